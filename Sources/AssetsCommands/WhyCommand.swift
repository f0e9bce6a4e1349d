// `why`: the rule that holds an app or a download now, and what would release it.
internal import AssetsWire
internal import CommandLineKit

extension AssetsTool {
    static func why(_ context: Context) throws(Failure) -> Int32 {
        let app = context.values.argument("bundle id") ?? ""
        let download = context.values.argument("download") ?? ""
        var standings: [DeviceInterface.Standing] = []
        try context.service.stream(DeviceInterface.Why.self, .init(app: app, download: download)) { page in
            if context.console.printsJSON {
                for standing in page.standings { context.console.data(json: standing) }
            } else {
                standings += page.standings
            }
        }
        if context.console.printsJSON { return ExitStatus.done }
        let isAnythingHeld = standings.contains(where: \.held)
        let lines = isAnythingHeld ? standings.flatMap(lines) : [free(standings, of: download.isEmpty ? app : download)]
        for line in lines { context.console.data(TerminalText.printable(line)) }
        return ExitStatus.done
    }

    private static func lines(of standing: DeviceInterface.Standing) -> [String] {
        guard standing.held else { return ["\(name(of: standing)): \(standing.detail)"] }
        let latest = standing.latest > 0 ? "; at the latest \(Format.date(standing.latest))" : ""
        return [
            "\(name(of: standing)): \(standing.reason): \(standing.detail)",
            "    released when \(standing.release)\(latest)",
        ]
    }

    /// Everything in one line.
    private static func free(_ standings: [DeviceInterface.Standing], of name: String) -> String {
        let facts = standings.map { "\(Self.name(of: $0)): \($0.detail)" }
        return "nothing holds '\(name)' (\(facts.joined(separator: "; ")))"
    }

    private static func name(of standing: DeviceInterface.Standing) -> String {
        let subject =
            switch standing.subject {
            case "control": "exclusive control"
            case "check": "periodic check"
            case "kept-file": "given up message"
            default: standing.subject
            }
        if standing.uniqueIdentifier.isEmpty { return subject }
        return "\(subject) '\(standing.identifier)' (\(standing.uniqueIdentifier))"
    }
}
