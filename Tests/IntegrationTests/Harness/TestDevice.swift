// A device of a test's own: its folder, its service, its journal.
import AssetsClient
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import RootHelperClient
import Testing

typealias JournalEntry = DeviceInterface.JournalEntry

/// A device with a real service in a folder of its own.
final class TestDevice: Sendable {
    let folder: String
    let location: DeviceLocation
    /// Rows of the journal, as the service tells them.
    let journal = EventLog<JournalEntry>("journal")
    private let service = Guarded<Program?>(nil)
    private let follower = Guarded<ServiceConnection?>(nil)
    /// The sample app's, once it was asked for: open for as long as anybody may come.
    let openTurnstile = Guarded<Turnstile?>(nil)

    var root: String { location.root }
    /// The service that this test started; nil when another client did.
    var program: Program? { service.withLock { $0 } }

    /// Where its service runs; nil for the machine's own network.
    let network: HelperNetwork?
    /// More variables for its service.
    let variables = Guarded<[String: String]>([:])

    private init(folder: String, root: String, network: HelperNetwork?) throws {
        self.folder = folder
        self.network = network
        location = try #require(DeviceLocation(device: root, environment: [:]))
    }

    /// Calls `body` with a new device whose service runs, and sees to it that nothing is left.
    ///
    /// - Parameters:
    ///   - place: a folder for the device's own folder, on another file system than the tests' for instance.
    ///   - network: its service runs on the device's side of it.
    static func run(
        starting: Bool = true, developerMode: Bool = true, in place: String? = nil, on network: HelperNetwork? = nil,
        _ body: (TestDevice) async throws -> Void
    ) async throws {
        try await DeviceSlots.shared.withSlot {
            let folder = try TestFolder()
            defer { folder.remove() }
            let device = try TestDevice(
                folder: folder.path, root: (place ?? folder.path) + "/device", network: network)
            for path in [device.folder + "/home", device.folder + "/tmp", device.root] {
                try Files.makeFolder(path)
                chmod(path, 0o700)
            }
            var cancellation: (any Error)?
            do {
                if starting { try await device.start(developerMode: developerMode) }
                try await body(device)
            } catch {
                // A test that cancels itself has said why.
                if Task.isCancelled { cancellation = error } else { device.explain(error) }
            }
            await device.end()
            if let cancellation { throw cancellation }
        }
    }

    // MARK: The service

    /// The environment of programs on this device.
    var environment: [String: String] {
        var result = [
            "HOME": folder + "/home", "TMPDIR": folder + "/tmp", "LANG": "C.UTF-8", "TZ": "UTC",
            "PATH": ProcessEnvironment.current["PATH"] ?? "/usr/bin:/bin", "BACKGROUNDASSETS_SERVICE": Products.service,
            "BACKGROUNDASSETS_DEVICE": root, "BACKGROUNDASSETS_LAUNCHER": Products.launcher,
        ]
        // Some programs are meant to crash. Who writes their backtrace reads all of their memory, which the address
        // sanitizer takes for a fault.
        result["SWIFT_BACKTRACE"] = "enable=no"
        // For the commands that run programs in a network of the root helper.
        let passed = ProcessEnvironment.sanitizerOptions.union(["BACKGROUNDASSETS_ROOT_HELPER"])
        for name in passed { result[name] = ProcessEnvironment.current[name] }
        return result
    }

    /// Starts the service and waits until it says that it is ready.
    ///
    /// - Parameter tracer: A program that runs another one, and what comes before the other's path.
    @discardableResult
    func start(
        developerMode: Bool = true, options: [String] = [], under tracer: [String] = []
    ) async throws -> Program {
        let path = folder + "/notify-\(UUID().uuidString.prefix(8))"
        let listener = try NotificationListener(path: path)
        let arguments = ["--device", root] + options
        let words = tracer + [Products.service] + arguments
        let command =
            network?.command(on: .device, Products.service, arguments, products: Products.folder)
            ?? (words[0], Array(words.dropFirst()))
        let program = try Program(
            command.0, command.1,
            environment: environment.merging(variables.withLock { $0 }) { $1 }.merging(["NOTIFY_SOCKET": path]) { $1 })
        program.closeInput()
        service.withLock { $0 = program }
        let socket = listener.descriptor.rawValue
        let isReady = try await blocking {
            var watched = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            return poll(&watched, 1, 60_000) == 1
        }
        let states = isReady ? try listener.receive() : nil
        guard states?.contains(.ready) == true else {
            throw HarnessError("the service is not ready: \(states ?? []), \(program.errors.all)")
        }
        try await follow()
        if developerMode { _ = try await call(DeviceInterface.SetDeveloperMode.self, .init(on: true)) }
        return program
    }

    /// Kills the service with SIGKILL, whoever started it.
    func kill() async throws {
        let process = try await self.process()
        Glibc.kill(process, SIGKILL)
        if let program, program.process == process {
            _ = try await program.end()
            service.withLock { $0 = nil }
        } else {
            try await Processes.gone(process)
        }
        _ = try? await journal.first(from: .max, within: .seconds(10), "end") { _ in false }
    }

    /// Ends the service with SIGTERM.
    @discardableResult
    func terminate() async throws -> ChildExit? {
        let process = try await self.process()
        Glibc.kill(process, SIGTERM)
        guard let program, program.process == process else {
            try await Processes.gone(process)
            return nil
        }
        let exit = try await program.end()
        service.withLock { $0 = nil }
        return exit
    }

    /// The service's process id.
    func process() async throws -> Int32 {
        Int32(try await call(DeviceInterface.Describe.self, Nothing()).process)
    }

    /// A connection to the service, which is started when it does not run.
    func connect() async throws -> ServiceConnection {
        let (location, environment) = (location, environment)
        return try await blocking {
            try ServiceStarter.connect(to: location, startIfNeeded: true, environment: environment)
        }
    }

    func call<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) async throws -> M.Reply {
        let connection = try await connect()
        return try await blocking {
            defer { connection.close() }
            return try connection.call(method, parameters)
        }
    }

    func pages<M: WireMethod>(_ method: M.Type, _ parameters: M.Parameters) async throws -> [M.Reply] {
        let connection = try await connect()
        return try await blocking {
            defer { connection.close() }
            var pages: [M.Reply] = []
            try connection.stream(method, parameters) {
                pages.append($0)
                return true
            }
            return pages
        }
    }

    // MARK: The journal

    /// Follows the journal from the last known row on. The stream ends with the service.
    func follow() async throws {
        let connection = try await connect()
        follower.withLock { $0 = connection }
        journal.reopen()
        let last = journal.all.last?.number ?? 0
        let journal = journal
        onThread {
            try? connection.stream(DeviceInterface.Journal.self, .init(app: "", after: last, follow: true)) { page in
                for entry in page.entries { journal.put(entry) }
                return true
            }
            journal.close()
        }
    }

    /// Stops following, so that no client of the test is connected.
    func unfollow() async throws {
        follower.withLock { $0 }?.close()
        _ = try? await journal.first(from: .max, within: .seconds(10), "end") { _ in false }
    }

    /// Waits for a row.
    @discardableResult
    func row(
        _ event: String, from start: Int = 0, within limit: Duration = .seconds(120),
        where matches: @escaping @Sendable (JournalEntry) -> Bool = { _ in true }
    ) async throws -> JournalEntry {
        try await journal.first(from: start, within: limit, "row \(event)") { $0.event == event && matches($0) }
    }

    /// Waits until the extension has been told of so many downloads.
    func told(_ count: Int, of app: String = FixtureBundle.identifier, from start: Int = 0) async throws {
        var place = start
        for _ in 0..<count {
            let from = place
            let row = try await row("extension-answered", from: from) { !$0.download.isEmpty && $0.app == app }
            place = (journal.all.firstIndex { $0.number == row.number } ?? place) + 1
        }
    }

    /// Waits until a condition holds, which is asked again with every row of the journal.
    func until(
        _ what: String, within limit: Duration = .seconds(120), _ condition: () async throws -> Bool
    ) async throws {
        let deadline = MonotonicClock.now + limit
        while true {
            let count = journal.count
            if try await condition() { return }
            guard MonotonicClock.now < deadline else { throw HarnessError("not within \(limit): \(what)") }
            // A change whose row came before it is seen by asking again after a while without rows.
            _ = try? await journal.first(from: count, within: .milliseconds(300), "row") { _ in true }
        }
    }

    /// All rows of an event. Asked for now: what follows the journal comes a moment later.
    func rows(_ event: String) async throws -> [JournalEntry] { try await wholeJournal().filter { $0.event == event } }

    /// Every row there is, asked for now.
    func wholeJournal() async throws -> [JournalEntry] {
        try await pages(DeviceInterface.Journal.self, .init(app: "", after: 0, follow: false)).flatMap(\.entries)
    }

    // MARK: Tools

    /// Starts the command line tool.
    func tool(_ words: [String]) throws -> Program {
        let program = try Program(Products.tool, ["--device", root, "--json"] + words, environment: environment)
        program.closeInput()
        return program
    }

    /// Runs the command line tool to its end.
    func cli(_ words: String...) async throws -> ProgramResult { try await tool(words).result(within: .seconds(120)) }

    func install(_ source: String, _ options: String...) async throws -> ProgramResult {
        try await tool(["install", source] + options).result(within: .seconds(180))
    }

    func downloads(of app: String = FixtureBundle.identifier) async throws -> [DeviceInterface.Download] {
        try await pages(DeviceInterface.Downloads.self, .init(app: app)).flatMap(\.downloads)
    }

    func apps() async throws -> [DeviceInterface.App] {
        try await pages(DeviceInterface.Apps.self, Nothing()).flatMap(\.apps)
    }

    /// A server whose certificate this device trusts in Developer Mode.
    func server(_ name: String = "www") async throws -> TestServer {
        try await TestServer.start(in: folder + "/" + name, authority: root + "/DevelopmentCA")
    }

    // MARK: The sample app

    /// The container of the sample app's group.
    func container(_ app: String = FixtureBundle.identifier) -> String { container(.group, of: "group.\(app)") }

    /// A path of nothing where there is none.
    func container(_ kind: ContainerFolders.Kind, of identifier: String) -> String {
        let folders = ContainerFolders { Files.names(in: "\(root)/\($0)") }
        return "\(root)/\(folders[kind, identifier] ?? "no container of \(identifier)")"
    }

    /// Makes a container before the service starts, which then keeps it.
    func makeContainer(_ kind: ContainerFolders.Kind, of identifier: String) throws -> String {
        let path = "\(root)/\(kind.rawValue)/\(ContainerFolders.name(of: identifier, 1, 2))"
        try Files.makeFolder(path)
        return path
    }

    /// A file that the sample app or its extension moved to its place.
    func asset(_ identifier: String, of app: String = FixtureBundle.identifier) -> Data? {
        Files.read("\(container(app))/\(FixtureName.assets)/\(identifier)")
    }

    /// What the extension noted.
    func extensionRecords(_ event: String? = nil, of app: String = FixtureBundle.identifier) throws -> [FixtureRecord] {
        let text = Files.read("\(container(app))/\(FixtureName.log)").map { String(decoding: $0, as: UTF8.self) } ?? ""
        return try text.split(separator: "\n").map { try FixtureRecord(line: String($0)) }
            .filter { event == nil || $0.event == event }
    }

    /// Launches the sample app through the gate; it takes commands.
    func launch(_ app: String = FixtureBundle.identifier) throws -> FixtureAppProcess {
        FixtureAppProcess(
            try Program(Products.tool, ["--device", root, "launch", app, "--", "commands"], environment: environment))
    }

    // MARK: The end

    private func explain(_ error: any Error) {
        let output = program.map { "service:\n" + $0.errors.all.joined(separator: "\n") } ?? ""
        let rows = journal.all.map { "\($0.number) \($0.event) \($0.reason) \($0.app) \($0.download) \($0.detail)" }
        Issue.record("\(error)\njournal:\n\(rows.joined(separator: "\n"))\n\(output)")
    }

    private func end() async {
        follower.withLock { $0 }?.close()
        let processes = Set(Processes.using(folder) + Processes.using(root)).sorted()
        for process in processes where Processes.commandLine(of: process).contains("backgroundassetsd") {
            Glibc.kill(process, SIGTERM)
            do { try await Processes.gone(process, within: .seconds(120)) } catch { Issue.record("\(error)") }
        }
        let left = Set(Processes.using(folder) + Processes.using(root)).sorted()
        #expect(left.isEmpty, "left: \(left.map { Processes.commandLine(of: $0) })")
        for process in left { Glibc.kill(process, SIGKILL) }
    }
}

/// Devices that exist at a time: more would only make each other late.
private actor DeviceSlots {
    static let shared = DeviceSlots()
    private var free = 4
    private var waiting: [CheckedContinuation<Void, Never>] = []

    nonisolated func withSlot(_ body: () async throws -> Void) async throws {
        await take()
        do { try await body() } catch {
            await giveBack()
            throw error
        }
        await giveBack()
    }

    private func take() async {
        guard free == 0 else {
            free -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func giveBack() {
        guard waiting.isEmpty else { return waiting.removeFirst().resume() }
        free += 1
    }
}

/// A running sample app.
final class FixtureAppProcess: Sendable {
    let program: Program

    init(_ program: Program) { self.program = program }

    /// Records that it wrote so far.
    var records: [FixtureRecord] { program.output.all.compactMap { try? FixtureRecord(line: $0) } }

    func events(_ event: String) -> [FixtureRecord] { records.filter { $0.event == event } }

    /// Has it carry out a command; returns its reply.
    @discardableResult
    func perform(_ command: String) async throws -> FixtureRecord {
        let start = program.output.count
        program.write(command)
        return try await event("reply", from: start) { $0.command == command }
    }

    @discardableResult
    func perform(_ verb: String, _ item: FixtureItem) async throws -> FixtureRecord {
        try await perform(verb + " " + String(decoding: try JSONEncoder().encode(item), as: UTF8.self))
    }

    /// Waits for a record.
    @discardableResult
    func event(
        _ event: String, from start: Int = 0, where matches: @escaping @Sendable (FixtureRecord) -> Bool = { _ in true }
    ) async throws -> FixtureRecord {
        let line = try await program.output.first(from: start, "record \(event) of the app") { line in
            guard let record = try? FixtureRecord(line: line) else { return false }
            return record.event == event && matches(record)
        }
        return try FixtureRecord(line: line)
    }

    /// Ends it by the end of its input.
    @discardableResult
    func end() async throws -> ProgramResult {
        program.closeInput()
        return try await program.result()
    }
}
