// One table per tool: the parser, the help, the man page and the shell completion are all made from it.

/// A command line tool: its verbs, and what holds for all of them.
package struct Tool: Sendable {
    /// What the shell calls it.
    package var name: String
    package var version: String
    /// One line, without a full stop.
    package var summary: String
    /// Paragraphs for the man page.
    package var description: [String]
    package var verbs: [Verb]
    /// What a tool does that has only one thing to do and no word for it; it bears the tool's name.
    package var action: Verb?
    /// Options that every verb takes, before or after its name.
    package var options: [Option]
    package var exitStatuses: [ExitStatusRow]
    /// Environment variables and files that the tool looks at.
    package var environment: [Remark]
    package var files: [Remark]
    /// Other pages, as in `systemctl(1)`.
    package var seeAlso: [String]

    package init(
        name: String, version: String, summary: String, description: [String], verbs: [Verb], options: [Option],
        exitStatuses: [ExitStatusRow], environment: [Remark] = [], files: [Remark] = [], seeAlso: [String] = []
    ) {
        self.name = name
        self.version = version
        self.summary = summary
        self.description = description
        self.verbs = verbs
        action = nil
        self.options = options
        self.exitStatuses = exitStatuses
        self.environment = environment
        self.files = files
        self.seeAlso = seeAlso
    }

    /// A tool without verbs.
    package init(
        action: Verb, version: String, description: [String], options: [Option] = [], exitStatuses: [ExitStatusRow],
        environment: [Remark] = [], files: [Remark] = [], seeAlso: [String] = []
    ) {
        self.init(
            name: action.name, version: version, summary: action.summary, description: description, verbs: [],
            options: options, exitStatuses: exitStatuses, environment: environment, files: files, seeAlso: seeAlso)
        self.action = action
    }

    package func verb(named name: String) -> Verb? { verbs.first { $0.name == name } }

    /// The options that the parser itself answers.
    static let builtIn: [Option] = [
        Option("help", short: "h", "Explain the tool, or the verb it stands beside."),
        Option("version", "Print the version."),
        Option(
            "generate", "Print a text made from this tool's table, for packages: its man page or its bash completion.",
            value: "what", kind: .choice(Generated.allCases.map(\.rawValue))),
    ]
}

/// Texts that packages take from a tool.
package enum Generated: String, Sendable, CaseIterable {
    case man
    case bashCompletion = "bash-completion"
}

/// One thing a tool does.
package struct Verb: Sendable {
    package var name: String
    /// One line, without a full stop.
    package var summary: String
    package var arguments: [Argument]
    package var options: [Option]
    /// Paragraphs of the verb's own help and of the man page.
    package var details: [String]
    package var examples: [Remark]

    package init(
        _ name: String, _ summary: String, arguments: [Argument] = [], options: [Option] = [], details: [String] = [],
        examples: [Remark] = []
    ) {
        self.name = name
        self.summary = summary
        self.arguments = arguments
        self.options = options
        self.details = details
        self.examples = examples
    }

    /// Name, arguments and options as in a manual: `install <source> [--sideload]`.
    package var usage: String {
        let parts = arguments.map(\.usage) + options.map(\.usage)
        // What follows `--` comes last.
        let rest = arguments.filter { $0.count == .rest }.map(\.usage)
        return ([name] + parts.filter { !rest.contains($0) } + rest).joined(separator: " ")
    }
}

/// What a value must look like; also what the shell offers for it.
package enum ValueKind: Sendable, Equatable {
    case text
    case number(ClosedRange<Int64>)
    case choice([String])
    case file
    case folder
}

/// A value that stands by its place.
package struct Argument: Sendable {
    package enum Count: Sendable, Equatable {
        case required
        case optional
        /// Everything after `--`.
        case rest
    }
    package var name: String
    package var kind: ValueKind
    package var count: Count
    package var summary: String

    package init(_ name: String, _ summary: String, kind: ValueKind = .text, count: Count = .required) {
        self.name = name
        self.kind = kind
        self.count = count
        self.summary = summary
    }

    package var usage: String {
        let shown =
            if case .choice(let choices) = kind { choices.joined(separator: "|") } else { "<\(name)>" }
        switch count {
        case .required: return shown
        case .optional: return "[\(shown)]"
        case .rest: return "[-- \(shown)...]"
        }
    }
}

/// `--name`, or `--name value`, or `--name=value`.
package struct Option: Sendable {
    /// Without the dashes.
    package var name: String
    /// One letter for it, as in `-h`.
    package var short: Character?
    /// What help calls the value; nil for a switch.
    package var value: String?
    package var kind: ValueKind
    package var repeats: Bool
    package var summary: String

    package init(
        _ name: String, short: Character? = nil, _ summary: String, value: String? = nil, kind: ValueKind = .text,
        repeats: Bool = false
    ) {
        self.name = name
        self.short = short
        self.value = value
        self.kind = kind
        self.repeats = repeats
        self.summary = summary
    }

    /// `--port <number>`, or `-p, --port <number>`.
    package var form: String { (short.map { "-\($0), " } ?? "") + long }
    package var usage: String { "[\(long)]" + (repeats ? "..." : "") }
    private var long: String { value.map { "--\(name) <\($0)>" } ?? "--\(name)" }
}

/// A thing and what is to be said of it: an example, a variable, a file.
package struct Remark: Sendable {
    package var subject: String
    package var text: String
    package init(_ subject: String, _ text: String) {
        self.subject = subject
        self.text = text
    }
}

/// One exit status of a tool.
package struct ExitStatusRow: Sendable {
    package var status: Int32
    package var meaning: String
    package init(_ status: Int32, _ meaning: String) {
        self.status = status
        self.meaning = meaning
    }
}

/// Exit statuses that all tools share.
package enum ExitStatus {
    package static let done: Int32 = 0
    package static let failed: Int32 = 1
    /// EX_USAGE of sysexits.h.
    package static let usage: Int32 = 64
    /// EX_UNAVAILABLE of sysexits.h.
    package static let noService: Int32 = 69
    /// What a shell reports of a program that Ctrl-C ended.
    package static let interrupted: Int32 = 130
}
