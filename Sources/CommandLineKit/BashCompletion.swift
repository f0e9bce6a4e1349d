// Completion for bash: verbs, options, fixed choices, files and folders.

extension Tool {
    /// A script for /usr/share/bash-completion/completions.
    package func bashCompletion() -> String {
        let function = "_" + String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
        let global = (options + Self.builtIn).map { "--\($0.name)" }.joined(separator: " ")
        // Words that take the next word as their value, so that it is not mistaken for the verb.
        let own = action?.options ?? []
        let valued = (own + options + Self.builtIn + verbs.flatMap(\.options)).filter { $0.value != nil }
        var lines = [
            "# bash completion for \(name)",
            "\(function)() {",
            "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb= word index",
            "    COMPREPLY=()",
            "    for ((index = 1; index < COMP_CWORD; index++)); do",
            "        word=${COMP_WORDS[index]}",
            "        case $word in",
            "            --) return ;;",
            "            \(pattern(valued)) ((index++)) ;;",
            "            -*) ;;",
            "            *) [[ -n $verb ]] || verb=$word ;;",
            "        esac",
            "    done",
            "    case $previous in",
        ]
        for option in distinct(valued) {
            let short = option.short.map { "-\($0)|" } ?? ""
            lines.append("        \(short)--\(option.name)) \(reply(option.kind)); return ;;")
        }
        lines += ["    esac", "    case $verb in"]
        let first = verbs.map(\.name) + own.map { "--\($0.name)" } + [global]
        lines.append("        '') \(words(first.joined(separator: " "))) ;;")
        for verb in verbs {
            let own = (verb.options.map { "--\($0.name)" } + [global]).joined(separator: " ")
            lines.append("        \(verb.name))")
            lines.append("            if [[ $current == -* ]]; then \(words(own))")
            if let first = verb.arguments.first(where: { $0.count != .rest && $0.kind != .text }) {
                lines.append("            else \(reply(first.kind))")
            }
            lines += ["            fi ;;"]
        }
        lines += ["    esac", "}", "complete -F \(function) \(name)"]
        return lines.joined(separator: "\n") + "\n"
    }

    private func pattern(_ options: [Option]) -> String {
        distinct(options).flatMap { ($0.short.map { ["-\($0)"] } ?? []) + ["--\($0.name)"] }
            .joined(separator: "|") + ")"
    }

    private func distinct(_ options: [Option]) -> [Option] {
        var seen: Set<String> = []
        return options.filter { seen.insert($0.name).inserted }
    }

    private func words(_ words: String) -> String { "COMPREPLY=($(compgen -W '\(words)' -- \"$current\"))" }

    private func reply(_ kind: ValueKind) -> String {
        switch kind {
        case .text, .number: ":"
        case .choice(let choices): words(choices.joined(separator: " "))
        case .file: "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")"
        case .folder: "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$current\")"
        }
    }
}
