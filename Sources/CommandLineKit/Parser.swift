// From words to a verb with checked values, or to one line that says what is wrong.

/// What a command line asks for.
package enum Request: Sendable {
    /// The tool's own help, or that of one verb.
    case help(Verb?)
    case version
    case generate(Generated)
    case run(Verb, Values)
}

/// The values of one command line, checked against the table.
package struct Values: Sendable, Equatable {
    private var arguments: [String: String] = [:]
    private var options: [String: [String]] = [:]
    /// What stood after `--`.
    package fileprivate(set) var rest: [String] = []

    /// An argument by its name; nil when an optional one was left out.
    package func argument(_ name: String) -> String? { arguments[name] }

    /// An option's value; of a repeated one the last.
    package func option(_ name: String) -> String? { options[name]?.last }

    /// Every value of an option that may be repeated, in the order given.
    package func all(_ name: String) -> [String] { options[name] ?? [] }

    package func has(_ name: String) -> Bool { options[name] != nil }

    /// The value of an option whose kind is `number`; the parser has checked it.
    package func number(_ name: String) -> Int64? { option(name).flatMap { Int64($0) } }

    fileprivate mutating func set(argument name: String, _ value: String) { arguments[name] = value }
    fileprivate mutating func add(option name: String, _ value: String) { options[name, default: []].append(value) }
}

/// A mistake on the command line: one line, and the next step.
package struct UsageMistake: Error, Hashable, Sendable, CustomStringConvertible {
    package var problem: String
    package var nextStep: String
    package init(_ problem: String, nextStep: String) {
        self.problem = problem
        self.nextStep = nextStep
    }
    package var description: String { "\(problem); \(nextStep)" }
}

extension Tool {
    /// Understands the words after the tool's name.
    package func parse(_ words: [String]) throws(UsageMistake) -> Request {
        var parser = Parser(tool: self, words: words)
        return try parser.run()
    }
}

private struct Parser {
    let tool: Tool
    var words: ArraySlice<String>
    var verb: Verb?
    var values = Values()
    var positions = 0
    var wantsHelp = false

    init(tool: Tool, words: [String]) {
        self.tool = tool
        self.words = words[...]
        verb = tool.action
    }

    mutating func run() throws(UsageMistake) -> Request {
        while let word = words.popFirst() {
            if word == "--" {
                try takeRest()
            } else if word.hasPrefix("--") {
                if let answer = try takeOption(word) { return answer }
            } else if word.hasPrefix("-") && word != "-" {
                if let answer = try takeOption(try writtenOut(word)) { return answer }
            } else if verb == nil {
                guard let found = tool.verb(named: word) else { throw unknownVerb(word) }
                verb = found
            } else {
                try takeArgument(word)
            }
        }
        if wantsHelp { return .help(tool.action == nil ? verb : nil) }
        guard let verb else {
            throw UsageMistake("nothing to do: no verb was given", nextStep: "'\(tool.name) --help' lists the verbs")
        }
        let missing = verb.arguments.dropFirst(positions).first { $0.count == .required }
        if let missing {
            throw mistake("'\(verb.name)' needs \(missing.usage): \(decapitalized(missing.summary))", nil)
        }
        return .run(verb, values)
    }

    // MARK: Pieces

    /// The long form of an option of one letter.
    private func writtenOut(_ word: String) throws(UsageMistake) -> String {
        let letter = word.dropFirst()
        guard letter.count == 1, let option = known.first(where: { $0.short == letter.first }) else {
            let example = (tool.options.first ?? known.first).map { ", as in --\($0.name)" } ?? ""
            throw mistake("there is no option '\(word)'", "options are written out" + example)
        }
        return "--" + option.name
    }

    private mutating func takeOption(_ word: String) throws(UsageMistake) -> Request? {
        let body = word.dropFirst(2)
        let name = String(body.prefix { $0 != "=" })
        var value = body.contains("=") ? String(body.drop { $0 != "=" }.dropFirst()) : nil
        guard let option = known.first(where: { $0.name == name }) else { throw unknownOption(name) }
        guard let valueName = option.value else {
            if value != nil { throw mistake("'--\(name)' takes no value", "write it alone") }
            switch name {
            case "help": wantsHelp = true
            case "version": return .version
            default: values.add(option: name, "")
            }
            return nil
        }
        if value == nil, let next = words.first, !next.hasPrefix("--") { value = words.popFirst() }
        guard let value, !value.isEmpty else {
            throw mistake("'--\(name)' needs a value", "write --\(name) <\(valueName)>")
        }
        if !option.repeats && values.has(name) { throw mistake("'--\(name)' was given twice", "keep one of them") }
        try check(value, option.kind, "--\(name)")
        if name == "generate", let what = Generated(rawValue: value) { return .generate(what) }
        values.add(option: name, value)
        return nil
    }

    private mutating func takeArgument(_ word: String) throws(UsageMistake) {
        guard let verb else { return }
        let places = verb.arguments.filter { $0.count != .rest }
        guard positions < places.count else {
            if verb.arguments.contains(where: { $0.count == .rest }) {
                throw mistake("'\(word)' is one argument too many", "what is meant for the app stands after --")
            }
            throw mistake("'\(word)' is one argument too many for '\(verb.name)'", nil)
        }
        let place = places[positions]
        guard !word.isEmpty else { throw mistake("\(place.usage) is empty", nil) }
        try check(word, place.kind, "'\(verb.name)'")
        values.set(argument: place.name, word)
        positions += 1
    }

    private mutating func takeRest() throws(UsageMistake) {
        guard let verb else { throw mistake("'--' stands before any verb", nil) }
        guard verb.arguments.contains(where: { $0.count == .rest }) else {
            throw mistake("'\(verb.name)' takes nothing after '--'", nil)
        }
        values.rest = Array(words)
        words = []
    }

    private var known: [Option] { (verb?.options ?? []) + tool.options + Tool.builtIn }

    private func check(_ value: String, _ kind: ValueKind, _ place: String) throws(UsageMistake) {
        switch kind {
        case .text, .file, .folder:
            return
        case .number(let range):
            if let number = Int64(value), range.contains(number) { return }
            let bounds =
                range.upperBound == .max
                ? "from \(range.lowerBound) on" : "from \(range.lowerBound) to \(range.upperBound)"
            throw mistake("\(place) needs a whole number \(bounds), not '\(value)'", nil)
        case .choice(let choices):
            if choices.contains(value) { return }
            throw mistake("\(place) takes \(list(choices)), not '\(value)'", nil)
        }
    }

    // MARK: Mistakes

    private func unknownVerb(_ word: String) -> UsageMistake {
        let guess = nearest(to: word, in: tool.verbs.map(\.name))
        return UsageMistake(
            "there is no verb '\(word)'",
            nextStep: guess.map { "did you mean '\($0)'?" } ?? "'\(tool.name) --help' lists the verbs")
    }

    private func unknownOption(_ name: String) -> UsageMistake {
        if let guess = nearest(to: name, in: known.map(\.name)) {
            return mistake("there is no option '--\(name)'", "did you mean '--\(guess)'?")
        }
        // Options of a verb may have been written before it.
        if verb == nil, let owner = tool.verbs.first(where: { $0.options.contains { $0.name == name } }) {
            return mistake("'--\(name)' belongs to a verb", "write it after '\(owner.name)'")
        }
        return mistake("'\(verb?.name ?? tool.name)' has no option '--\(name)'", nil)
    }

    private func mistake(_ problem: String, _ nextStep: String?) -> UsageMistake {
        let words = tool.action == nil ? verb.map { [$0.name] } ?? [] : []
        let help = (["see '\(tool.name)"] + words + ["--help'"]).joined(separator: " ")
        return UsageMistake(problem, nextStep: nextStep ?? help)
    }
}

private func list(_ choices: [String]) -> String {
    let quoted = choices.map { "'\($0)'" }
    guard let last = quoted.last, quoted.count > 1 else { return quoted.first ?? "nothing" }
    return quoted.dropLast().joined(separator: ", ") + " or " + last
}

private func decapitalized(_ sentence: String) -> String {
    var text = sentence.prefix(1).lowercased() + sentence.dropFirst()
    if text.hasSuffix(".") { text.removeLast() }
    return text
}

/// The word that was probably meant: at most two letters away, or begun with what was typed.
func nearest(to word: String, in candidates: [String]) -> String? {
    let near = candidates.map { ($0, editDistance(word, $0)) }.filter { $0.1 <= min(2, $0.0.count / 2) }
    if let best = near.min(by: { $0.1 < $1.1 }) { return best.0 }
    return word.count >= 2 ? candidates.first { $0.hasPrefix(word) } : nil
}

/// Letters to insert, remove or replace.
private func editDistance(_ from: String, _ to: String) -> Int {
    let target = Array(to)
    var row = Array(0...target.count)
    for (index, letter) in from.enumerated() {
        var diagonal = row[0]
        row[0] = index + 1
        for column in target.indices {
            let above = row[column + 1]
            row[column + 1] = min(
                above + 1, row[column] + 1, diagonal + (target[column] == letter ? 0 : 1))
            diagonal = above
        }
    }
    return row[target.count]
}
