// `apps`, `launch`, `uninstall`.
internal import AssetsModel
internal import AssetsOS
internal import AssetsWire
internal import CommandLineKit
internal import Glibc

extension AssetsTool {
    static func apps(_ context: Context) throws(Failure) -> Int32 {
        var table = Table([
            .init("BUNDLE ID"), .init("NAME"), .init("VERSION"), .init("STATE"), .init("INSTALLED"),
            .init("LAUNCHED"), .init("WAITS FOR"),
        ])
        try context.service.stream(DeviceInterface.Apps.self, .init()) { page in
            for app in page.apps {
                if context.console.printsJSON {
                    context.console.data(json: app)
                } else {
                    table.add([
                        app.bundleIdentifier, app.name, "\(app.version) (\(app.build))",
                        app.launchable ? "launchable" : app.state, Format.date(app.installedAt),
                        Format.date(app.launchedAt), app.reason,
                    ])
                }
            }
        }
        print(table, ifEmpty: "no apps are installed; 'backgroundassets install' installs one", context)
        return ExitStatus.done
    }

    /// Becomes the app, when the gate lets it through.
    static func launch(_ context: Context) throws(Failure) -> Int32 {
        let app = context.values.argument("bundle id") ?? ""
        let reply: DeviceInterface.Launch.Reply
        do throws(Failure) {
            reply = try context.service.call(DeviceInterface.Launch.self, .init(app: app))
        } catch {
            guard error.code != 0, !context.console.printsJSON else { throw error }
            throw Failure(
                code: error.code, "'\(app)' cannot be launched (code \(error.code)): \(error.reason)",
                remedy: error.remedy, status: error.status)
        }
        var environment = ProcessEnvironment.current.merging(reply.environment) { _, added in added }
        if let library = reply.environment[RepairLibrary.loaderVariable] {
            // Whoever starts the app may have libraries to load of his own.
            environment[RepairLibrary.loaderVariable] = RepairLibrary.list(
                library, before: ProcessEnvironment.current[RepairLibrary.loaderVariable])
        }
        let number = execute(reply.executable, arguments: context.values.rest, environment: environment)
        throw Failure("'\(reply.executable)' cannot be started: \(String(cString: strerror(number)))")
    }

    static func uninstall(_ context: Context) throws(Failure) -> Int32 {
        let app = context.values.argument("bundle id") ?? ""
        _ = try context.service.call(DeviceInterface.Uninstall.self, .init(app: app))
        context.console.say("'\(TerminalText.printable(app))' is uninstalled")
        return ExitStatus.done
    }

    /// Writes a finished list; a list without rows is no data, so its remark is talk.
    static func print(_ table: Table, ifEmpty remark: String, _ context: Context) {
        if context.console.printsJSON { return }
        if table.isEmpty {
            context.console.say(remark)
        } else {
            context.console.data(table.lines(width: context.console.dataWidth).joined(separator: "\n"))
        }
    }

    /// Replaces this process; returns the error number where that fails.
    private static func execute(_ path: String, arguments: [String], environment: [String: String]) -> Int32 {
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        // Sorted, so that the same launch gives the same environment.
        var settings = environment.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } + [nil]
        execve(path, &words, &settings)
        let number = errno
        for word in words + settings { free(word) }
        return number
    }
}
