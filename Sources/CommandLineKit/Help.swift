// `--help`: what a person at a terminal needs, and where to read on.

extension Tool {
    /// The help of the tool, or of one of its verbs, for a terminal `width` columns wide.
    package func help(for verb: Verb? = nil, width: Int = 80) -> String {
        let page = (verb ?? action).map { verbHelp($0, width: width) } ?? toolHelp(width: width)
        return page.joined(separator: "\n") + "\n"
    }

    private func toolHelp(width: Int) -> [String] {
        var lines = [summary + ".", "", "Usage: \(name) [options] <verb> ...", ""]
        lines += section("Verbs", verbs.map { Remark($0.usage, $0.summary + ".") }, width: width)
        lines += section("Options", (options + Self.builtIn).map { Remark($0.form, $0.summary) }, width: width)
        if let example = verbs.lazy.compactMap(\.examples.first).first {
            lines += ["Example:", "  \(example.subject)", ""]
        }
        lines += ["'\(name) <verb> --help' explains a verb; 'man \(name)' has exit codes, files and all the rest."]
        return lines
    }

    private func verbHelp(_ verb: Verb, width: Int) -> [String] {
        var lines = [verb.summary + ".", ""]
        lines += wrap("Usage: " + (action == nil ? "\(name) " : "") + verb.usage, width: width, indent: 7)
        lines += [""]
        for paragraph in verb.details { lines += wrap(paragraph, width: width) + [""] }
        lines += section("Arguments", verb.arguments.map { Remark("<\($0.name)>", $0.summary) }, width: width)
        let own = verb.options + options + (action == nil ? [] : Self.builtIn)
        lines += section("Options", own.map { Remark($0.form, $0.summary) }, width: width)
        if !verb.examples.isEmpty {
            lines += ["Examples:"]
            for example in verb.examples {
                lines += ["  \(example.subject)"] + wrap(example.text, width: width, indent: 6, first: 6)
            }
            lines += [""]
        }
        lines.removeLast()
        return lines
    }

    private func section(_ title: String, _ rows: [Remark], width: Int) -> [String] {
        guard !rows.isEmpty else { return [] }
        // Texts line up behind subjects of usual length; longer subjects get a line of their own.
        let column = min(28, (rows.map(\.subject.count).max() ?? 0) + 4)
        var lines = ["\(title):"]
        for row in rows {
            let subject = "  " + row.subject
            let text = wrap(row.text, width: width, indent: column, first: column)
            if subject.count + 2 > column {
                lines += [subject] + text
            } else if let first = text.first {
                lines += [subject + String(first.dropFirst(subject.count))] + text.dropFirst()
            }
        }
        return lines + [""]
    }
}

/// Breaks a paragraph at spaces; `first` columns are left free in its first line, `indent` in the others.
func wrap(_ text: String, width: Int, indent: Int = 0, first: Int = 0) -> [String] {
    var lines: [String] = []
    var line = String(repeating: " ", count: first)
    var isEmpty = true
    for word in text.split(separator: " ") {
        if !isEmpty && line.count + 1 + word.count > width {
            lines.append(line)
            line = String(repeating: " ", count: indent)
            isEmpty = true
        }
        line += (isEmpty ? "" : " ") + word
        isEmpty = false
    }
    return lines + [line]
}
