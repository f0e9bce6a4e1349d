import CommandLineKit
import Testing

@Suite("Command lines")
struct ParserTests {
    private func values(_ words: String...) throws -> (verb: String, values: Values) {
        let request = try example.parse(words)
        guard case .run(let verb, let values) = request else { throw Unexpected() }
        return (verb.name, values)
    }

    @Test("A tool without verbs takes its options at once, also by their letters")
    func withoutVerbs() throws {
        guard case .run(let verb, let values) = try single.parse(["-b", "2", "-t", "--soup=pea"]) else {
            Issue.record("not run")
            return
        }
        #expect(verb.name == "ladle" && values.number("bowls") == 2 && values.has("hot"))
        #expect(values.option("soup") == "pea")
        for words in [["-h"], ["--help"], ["-t", "-h"]] {
            guard case .help(nil) = try single.parse(words) else {
                Issue.record("no help for \(words)")
                continue
            }
        }
        for (words, message) in [
            (["-x"], "there is no option '-x'"), (["-bt"], "there is no option '-bt'"),
            (["-b"], "'--bowls' needs a value"),
            (["-b", "10"], "--bowls needs a whole number from 1 to 9"), (["pea"], "'pea' is one argument too many"),
            (["-b", "1", "--bowls", "2"], "given twice"), (["--bowl", "1"], "did you mean '--bowls'"),
        ] {
            #expect(throws: UsageMistake.self) { try single.parse(words) }
            do { _ = try single.parse(words) } catch { #expect("\(error)".contains(message), "\(error)") }
        }
    }

    @Test("Arguments and options may stand in any order around the verb")
    func order() throws {
        let (verb, found) = try values(
            "--room", "/tmp", "cook", "--with=salt", "eggs", "--with", "oil", "fried", "--quick", "--json")
        #expect(verb == "cook")
        #expect(found.argument("dish") == "eggs")
        #expect(found.argument("style") == "fried")
        #expect(found.all("with") == ["salt", "oil"])
        #expect(found.option("room") == "/tmp")
        #expect(found.has("quick") && found.has("json"))
        #expect(found.number("minutes") == nil)
        #expect(found.rest == [])
    }

    @Test("What stands after -- is passed on as it is")
    func rest() throws {
        let (_, found) = try values("cook", "eggs", "--", "--json", "-x", "--", "")
        #expect(found.rest == ["--json", "-x", "--", ""])
        #expect(!found.has("json"))
        #expect(found.argument("style") == nil)
    }

    @Test("An option's value may contain an equals sign and may begin with one dash")
    func values() throws {
        let (_, found) = try values("cook", "eggs", "--with=a=b", "--with", "-")
        #expect(found.all("with") == ["a=b", "-"])
    }

    @Test(
        "A mistake is one specific line with the next step",
        arguments: [
            ([], "nothing to do: no verb was given; 'kitchen --help' lists the verbs"),
            (["cok"], "there is no verb 'cok'; did you mean 'cook'?"),
            (["li"], "there is no verb 'li'; did you mean 'list'?"),
            (["xyzzy"], "there is no verb 'xyzzy'; 'kitchen --help' lists the verbs"),
            (["cook"], "'cook' needs <dish>: the dish to cook; see 'kitchen cook --help'"),
            (["cook", ""], "<dish> is empty; see 'kitchen cook --help'"),
            (
                ["cook", "eggs", "steamed"],
                "'cook' takes 'fried', 'boiled' or 'raw', not 'steamed'; see 'kitchen cook --help'"
            ),
            (
                ["cook", "eggs", "raw", "now"],
                "'now' is one argument too many; what is meant for the app stands after --"
            ),
            (["list", "x"], "'x' is one argument too many for 'list'; see 'kitchen list --help'"),
            (["list", "--", "x"], "'list' takes nothing after '--'; see 'kitchen list --help'"),
            (["--", "x"], "'--' stands before any verb; see 'kitchen --help'"),
            (["cook", "eggs", "--minuts", "3"], "there is no option '--minuts'; did you mean '--minutes'?"),
            (["list", "--quick"], "'list' has no option '--quick'; see 'kitchen list --help'"),
            (["--minutes", "3", "cook"], "'--minutes' belongs to a verb; write it after 'cook'"),
            (["cook", "eggs", "--minutes"], "'--minutes' needs a value; write --minutes <number>"),
            (["cook", "eggs", "--minutes", "--quick"], "'--minutes' needs a value; write --minutes <number>"),
            (["cook", "eggs", "--minutes="], "'--minutes' needs a value; write --minutes <number>"),
            (
                ["cook", "eggs", "--minutes", "91"],
                "--minutes needs a whole number from 1 to 90, not '91'; see 'kitchen cook --help'"
            ),
            (
                ["list", "--after", "99999999999999999999"],
                "--after needs a whole number from 0 on, not '99999999999999999999'; see 'kitchen list --help'"
            ),
            (["cook", "eggs", "--minutes", "3", "--minutes", "4"], "'--minutes' was given twice; keep one of them"),
            (["cook", "eggs", "--quick=yes"], "'--quick' takes no value; write it alone"),
            (["cook", "-q"], "there is no option '-q'; options are written out, as in --room"),
            (
                ["--generate", "zsh"],
                "--generate takes 'man' or 'bash-completion', not 'zsh'; see 'kitchen --help'"
            ),
        ])
    func mistakes(words: [String], message: String) throws {
        let mistake = #expect(throws: UsageMistake.self) { try example.parse(words) }
        #expect(mistake?.description == message)
    }

    @Test("Help, version and generated texts are asked for by option", arguments: ["--help", "-h"])
    func builtIn(help: String) throws {
        guard case .help(nil) = try example.parse([help]) else { throw Unexpected() }
        guard case .help(.some(let verb)) = try example.parse(["cook", help]) else { throw Unexpected() }
        #expect(verb.name == "cook")
        guard case .version = try example.parse(["--version"]) else { throw Unexpected() }
        guard case .generate(.man) = try example.parse(["--generate", "man"]) else { throw Unexpected() }
    }

    @Test("No words bring the parser down, whatever they are")
    func anything() {
        let pieces = [
            "cook", "list", "--", "--room", "--room=", "=", "", "-", "--json", "--minutes", "3", "é\u{0}", "--=",
        ]
        var random = SeededGenerator(state: 7)
        for _ in 0..<20_000 {
            let words = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                pieces[Int.random(in: 0..<pieces.count, using: &random)]
            }
            guard case .run(let verb, let values)? = try? example.parse(words) else { continue }
            // What the table requires is there.
            for argument in verb.arguments where argument.count == .required {
                #expect(values.argument(argument.name)?.isEmpty == false, "\(words)")
            }
        }
    }

    struct Unexpected: Error {}
}

/// The same numbers on every run.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 29)
    }
}
