// `extension`: what an app's extension may use, and what its runs used.
internal import AssetsWire
internal import CommandLineKit

extension AssetsTool {
    static func `extension`(_ context: Context) throws(Failure) -> Int32 {
        let app = context.values.argument("bundle id") ?? ""
        let reply = try context.service.call(DeviceInterface.Extension.self, .init(app: app))
        if context.console.printsJSON {
            context.console.data(json: reply)
            return ExitStatus.done
        }
        for line in lines(of: reply.extension) { context.console.data(TerminalText.printable(line)) }
        var table = Table([
            .init("LAUNCHED"), .init("CALLS", .right), .init("RUNTIME", .right), .init("MEMORY", .right),
            .init("WARNINGS"), .init("END"),
        ])
        for run in reply.runs {
            table.add([
                Format.date(run.launchedAt), String(run.calls), Format.duration(.seconds(run.runtime)),
                Format.bytes(run.memoryPeak), run.warnings.isEmpty ? "-" : run.warnings.joined(separator: ", "),
                end(of: run),
            ])
        }
        if !table.isEmpty { context.console.data("") }
        print(table, ifEmpty: "it has not run yet", context)
        return ExitStatus.done
    }

    private static func lines(of state: DeviceInterface.ExtensionState) -> [String] {
        let used = Format.duration(.seconds(state.runtimeUsed))
        var lines = [
            "state    \(state.state)",
            "runtime  \(used) of \(Format.duration(.seconds(state.runtimeMax))) in the past day",
            "memory   up to \(Format.bytes(state.memoryMax)) of its own; files that it maps are free",
        ]
        if !state.reason.isEmpty { lines.append("refused  \(state.reason): \(state.detail)") }
        return lines
    }

    private static func end(of run: DeviceInterface.ExtensionRun) -> String {
        if run.endedAt == 0, run.reason.isEmpty { return "-" }
        if run.reason.isEmpty { return "no longer needed" }
        return run.detail.isEmpty ? run.reason : "\(run.reason): \(run.detail)"
    }
}
