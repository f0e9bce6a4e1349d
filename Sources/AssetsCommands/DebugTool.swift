// The command `backgroundassets-debug`: lists devices, and sends them events.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import CommandLineKit
internal import Glibc

/// The tool with which developers have the extension of their app called.
package enum DebugTool {
    /// What its options call an event, and what the wire does.
    private static let events = [
        ("app-install", "install"), ("app-update", "update"), ("app-periodic-check", "periodic"),
    ]

    /// Does what `words` (without the tool's name) ask for and returns the exit status.
    package static func run(_ words: [String]) -> Int32 {
        do throws(UsageMistake) {
            switch try table.parse(words) {
            case .help: Console().data(text: table.help())
            case .version: Console().data("\(table.name) \(AssetsTool.version)")
            case .generate(.man): Console().data(text: table.manPage())
            case .generate(.bashCompletion): Console().data(text: table.bashCompletion())
            case .run(_, let values): return try run(values)
            }
            return ExitStatus.done
        } catch {
            Console().say("\(table.name): \(TerminalText.printable(error.description))")
            return ExitStatus.usage
        }
    }

    private static func run(_ values: Values) throws(UsageMistake) -> Int32 {
        let order = try Order(values)
        let console = Console(printsJSON: values.has("json"))
        do throws(Failure) {
            switch order {
            case .list: try list(console)
            case .simulate(let event, let app, let device): try simulate(event, app, on: device, console)
            }
            return ExitStatus.done
        } catch {
            console.say(failure: error, from: table.name)
            return error.status
        }
    }

    /// What the options come to.
    private enum Order {
        case list
        case simulate(event: (option: String, word: String), app: String, device: String)

        init(_ values: Values) throws(UsageMistake) {
            let help = "see '\(table.name) --help'"
            let chosen = events.filter { values.has($0.0) }
            let others = ["app-bundle-id", "device-id"].filter(values.has) + chosen.map(\.0)
            switch (values.has("list-devices"), values.has("simulate")) {
            case (true, true): throw UsageMistake("'--list-devices' and '--simulate' are two things", nextStep: help)
            case (true, false):
                if let other = others.first {
                    throw UsageMistake("'--\(other)' belongs to '--simulate'", nextStep: help)
                }
                self = .list
            case (false, false):
                throw UsageMistake(
                    others.first.map { "'--\($0)' belongs to '--simulate'" } ?? "nothing to do", nextStep: help)
            case (false, true):
                let names = events.map { "--\($0.0)" }.joined(separator: ", ")
                guard let event = chosen.first, chosen.count == 1 else {
                    throw UsageMistake("'--simulate' needs one event", nextStep: "name one of \(names)")
                }
                guard let app = values.option("app-bundle-id") else {
                    throw UsageMistake("'--simulate' needs an app", nextStep: "name it with --app-bundle-id <id>")
                }
                guard let device = values.option("device-id") else {
                    throw UsageMistake(
                        "'--simulate' needs a device", nextStep: "name it with --device-id <id>, of '--list-devices'")
                }
                self = .simulate(event: event, app: app, device: device)
            }
        }
    }

    // MARK: Devices

    /// A device as it is listed.
    private struct Device: Encodable {
        var id: String
        var root: String
        var developerMode: Bool
        var version: String

        enum CodingKeys: String, CodingKey {
            case id
            case root
            case developerMode = "developer_mode"
            case version
        }
    }

    private static func list(_ console: Console) throws(Failure) {
        var table = Table([.init("DEVICE ID"), .init("FOLDER"), .init("DEVELOPER MODE"), .init("VERSION")])
        let devices = try devices().map(\.device)
        for device in devices {
            if console.printsJSON {
                console.data(json: device)
            } else {
                table.add([device.id, device.root, device.developerMode ? "on" : "off", device.version])
            }
        }
        guard !console.printsJSON else { return }
        guard !devices.isEmpty else {
            return console.say("there are no devices; 'backgroundassets settings' makes the user's own")
        }
        console.data(table.lines(width: console.dataWidth).joined(separator: "\n"))
    }

    /// Every device that has a folder; its service is started where it does not run.
    private static func devices() throws(Failure) -> [(device: Device, access: ServiceAccess)] {
        let environment = ProcessEnvironment.current
        let named = ServiceAccess(deviceOption: nil, environment: environment)
        let own = ServiceAccess(
            deviceOption: nil, environment: environment.filter { $0.key != DeviceLocation.variable })
        var found: [(device: Device, access: ServiceAccess)] = []
        var roots: Set<String> = []
        for access in [named, own] {
            // Without a home the user has no device of his own.
            guard let location = try? access.location(), roots.insert(location.root).inserted, isFolder(location.root)
            else { continue }
            let reply = try access.call(DeviceInterface.Describe.self, Nothing())
            let device = Device(
                id: reply.device, root: reply.root, developerMode: reply.developerMode, version: reply.version)
            found.append((device, access))
        }
        return found
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    // MARK: Events

    /// What was sent, as JSON.
    private struct Sent: Encodable {
        var event: String
        var app: String
        var device: String
    }

    private static func simulate(
        _ event: (option: String, word: String), _ app: String, on id: String, _ console: Console
    ) throws(Failure) {
        guard let (device, access) = try devices().first(where: { $0.device.id == id.uppercased() }) else {
            throw Failure(
                "there is no device '\(id)'", remedy: "'\(table.name) --list-devices' prints the ids of those there are"
            )
        }
        _ = try access.call(DeviceInterface.Simulate.self, .init(app: app, event: event.word))
        if console.printsJSON {
            console.data(json: Sent(event: event.option, app: app, device: device.id))
        } else {
            console.data(
                TerminalText.printable("The \(event.option) event for \(app) was sent to device \(device.id)."))
        }
    }
}
