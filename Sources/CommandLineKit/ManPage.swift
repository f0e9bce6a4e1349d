// The manual page, in roff with the man macros.

extension Tool {
    /// Section 1 page of the tool.
    package func manPage() -> String {
        var page = ManPage()
        page.macro("TH", [name.uppercased(), "1", "", "\(name) \(version)", "User Commands"])
        page.section("NAME")
        page.text("\(name) - \(summary.prefix(1).lowercased() + summary.dropFirst())")
        page.section("SYNOPSIS")
        page.synopsis(name, action == nil ? "[options] <verb> ..." : "[options]")
        page.section("DESCRIPTION")
        for paragraph in description { page.paragraph(paragraph) }
        if let action {
            for paragraph in action.details { page.paragraph(paragraph) }
        } else {
            page.section("VERBS")
            for verb in verbs { page.add(verb, tool: name) }
        }
        page.section("OPTIONS")
        for option in (action?.options ?? []) + options + Self.builtIn { page.item(option.form, option.summary) }
        page.remarks("EXAMPLES", action?.examples ?? [])
        page.section("EXIT STATUS")
        for row in exitStatuses { page.item(String(row.status), row.meaning) }
        page.remarks("ENVIRONMENT", environment)
        page.remarks("FILES", files)
        if !seeAlso.isEmpty {
            page.section("SEE ALSO")
            page.text(seeAlso.joined(separator: ", "))
        }
        return page.lines.joined(separator: "\n") + "\n"
    }
}

private struct ManPage {
    var lines: [String] = []

    mutating func macro(_ name: String, _ arguments: [String]) {
        lines.append(".\(name) " + arguments.map { "\"\(Self.escape($0))\"" }.joined(separator: " "))
    }

    mutating func section(_ title: String) { lines.append(".SH \(title)") }

    mutating func text(_ text: String) {
        let escaped = Self.escape(text)
        // A line that begins with a dot or a quote would be taken for a request.
        lines.append(escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped)
    }

    mutating func paragraph(_ text: String) {
        lines.append(".PP")
        self.text(text)
    }

    mutating func synopsis(_ name: String, _ rest: String) {
        lines.append(".B \(Self.escape(name))")
        text(rest)
    }

    mutating func item(_ subject: String, _ text: String) {
        lines.append(".TP")
        lines.append(".B \(Self.escape(subject))")
        self.text(text)
    }

    mutating func remarks(_ title: String, _ remarks: [Remark]) {
        guard !remarks.isEmpty else { return }
        section(title)
        for remark in remarks { item(remark.subject, remark.text) }
    }

    mutating func add(_ verb: Verb, tool: String) {
        lines.append(".SS \(Self.escape(verb.usage))")
        text(verb.summary + ".")
        for paragraph in verb.details { self.paragraph(paragraph) }
        for argument in verb.arguments { item("<\(argument.name)>", argument.summary) }
        for option in verb.options { item(option.form, option.summary) }
        for example in verb.examples {
            lines += [".PP", "Example: \(Self.escape(example.text))", ".PP", ".RS 4", ".nf"]
            text(example.subject)
            lines += [".fi", ".RE"]
        }
    }

    static func escape(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "\\": escaped += "\\e"
            case "-": escaped += "\\-"
            case "\"": escaped += "\\(dq"
            case "\n": escaped += " "
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
