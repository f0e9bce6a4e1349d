import CommandLineKit
import Foundation
import Testing

@Suite("Texts made from the table")
struct GeneratedTextTests {
    @Test("Help and man page of a tool without verbs are about its options, with their letters")
    func withoutVerbs() {
        let help = single.help()
        #expect(help.hasPrefix("Serve soup.\n\nUsage: ladle [--bowls <number>] [--hot] [--soup <name>]"), "\(help)")
        #expect(help.contains("-b, --bowls <number>") && help.contains("-h, --help") && !help.contains("<verb>"))
        let man = single.manPage()
        #expect(man.contains(".B \\-b, \\-\\-bowls <number>") && !man.contains(".SH VERBS"), "\(man)")
        #expect(man.contains("Takes the soup from the pot.") && man.contains(".SH EXAMPLES"))
        let completion = single.bashCompletion()
        #expect(completion.contains("-b|--bowls|--soup|--generate)"), "\(completion)")
        #expect(completion.contains("--bowls --hot --soup --help"))
    }

    @Test("The tool's help lists verbs and options and says where to read on")
    func toolHelp() {
        let expected = """
            Cook and serve.

            Usage: kitchen [options] <verb> ...

            Verbs:
              cook <dish> [fried|boiled|raw] [--minutes <number>] [--with <thing>]... [--quick] [-- <spice>...]
                                        Cook a dish.
              list [--after <n>]        List the dishes.

            Options:
              --room <folder>    The kitchen to use.
              --json             Print JSON.
              -h, --help         Explain the tool, or the verb it stands beside.
              --version          Print the version.
              --generate <what>  Print a text made from this tool's table, for packages: its
                                 man page or its bash completion.

            Example:
              kitchen cook eggs fried --minutes 3

            'kitchen <verb> --help' explains a verb; 'man kitchen' has exit codes, files and all the rest.

            """
        #expect(example.help() == expected)
    }

    @Test("A verb's help has its arguments, its options, the common options and examples")
    func verbHelp() {
        let expected = """
            Cook a dish.

            Usage: kitchen cook <dish> [fried|boiled|raw] [--minutes <number>] [--with
                   <thing>]... [--quick] [-- <spice>...]

            Uses every pan there is, one after the other, and cleans each of them before the
            next.

            Arguments:
              <dish>   The dish to cook.
              <style>  How to cook it.
              <spice>  Given to the cook.

            Options:
              --minutes <number>  How long.
              --with <thing>      What goes into it; may be given more than once.
              --quick             Do it quickly.
              --room <folder>     The kitchen to use.
              --json              Print JSON.

            Examples:
              kitchen cook eggs fried --minutes 3
                  Fry eggs.

            """
        #expect(example.help(for: example.verb(named: "cook")) == expected)
    }

    @Test(
        "The man page has every verb, option, exit status, variable and reference, with roff's own characters escaped")
    func manPage() {
        let page = example.manPage()
        #expect(page.hasPrefix(".TH \"KITCHEN\" \"1\" \"\" \"kitchen 1.2\" \"User Commands\"\n.SH NAME\n"))
        #expect(page.contains("\nkitchen \\- cook and serve\n"))
        #expect(page.contains("\n.PP\nIt \\eserves\\-too.\n"))
        #expect(page.contains("\n.SS cook <dish> [fried|boiled|raw]"))
        #expect(page.contains("\n.TP\n.B \\-\\-with <thing>\nWhat goes into it; may be given more than once.\n"))
        #expect(page.contains("\n.SH EXIT STATUS\n.TP\n.B 0\nDone.\n.TP\n.B 64\nWrong words.\n"))
        #expect(page.contains("\n.SH ENVIRONMENT\n.TP\n.B KITCHEN\n"))
        #expect(page.hasSuffix("\n.SH SEE ALSO\nknife(1)\n"))
    }

    @Test("A text that begins like a roff request is text")
    func roffRequests() {
        var tool = example
        tool.description = [".so /etc/passwd", "'quoted"]
        #expect(tool.manPage().contains("\n.PP\n\\&.so /etc/passwd\n.PP\n\\&'quoted\n"))
    }

    @Test("bash accepts the completion, and offers verbs, options, choices and values by place")
    func completion() throws {
        let folder = try TemporaryFolder()
        try Data(example.bashCompletion().utf8).write(to: folder.url.appending(path: "kitchen"))
        try Data().write(to: folder.url.appending(path: "eggs and ham.txt"))
        try FileManager.default.createDirectory(
            at: folder.url.appending(path: "pantry"), withIntermediateDirectories: false)
        func offered(_ words: String...) throws -> Set<String> {
            try complete(["kitchen"] + words, in: folder.url)
        }
        #expect(try offered("") == ["cook", "list", "--room", "--json", "--help", "--version", "--generate"])
        #expect(try offered("co") == ["cook"])
        #expect(try offered("--room", "/tmp", "l") == ["list"])
        #expect(try offered("--room", "") == ["pantry"])
        #expect(try offered("cook", "--w") == ["--with"])
        #expect(try offered("cook", "eg") == ["eggs and ham.txt"])
        #expect(try offered("list", "--q") == [])
        #expect(try offered("--generate", "b") == ["bash-completion"])
        #expect(try offered("cook", "eggs", "--", "--") == [])
    }

    private func complete(_ words: [String], in folder: URL) throws -> Set<String> {
        let quoted = words.map { "'\($0)'" }.joined(separator: " ")
        // compopt only works inside a real completion.
        let script = """
            compopt() { :; }; source ./kitchen; COMP_WORDS=(\(quoted)); COMP_CWORD=\(words.count - 1); _kitchen
            printf '%s\\n' "${COMPREPLY[@]}"
            """
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/bin/bash")
        process.arguments = ["-u", "-c", script]
        process.currentDirectoryURL = folder
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return Set(String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init))
    }
}

/// A fresh folder that goes with its owner.
final class TemporaryFolder {
    let url: URL
    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "kit-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    }
    deinit { try? FileManager.default.removeItem(at: url) }
}
