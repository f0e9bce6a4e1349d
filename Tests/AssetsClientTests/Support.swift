// A small service on an event loop, so that the client speaks with what it will meet.
import Glibc
import Testing

@testable import AssetsClient
@testable import AssetsOS
@testable import AssetsWire

/// Answers a few methods of the device interface.
actor TestService {
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// Names of installs that a client left while they were followed.
    nonisolated let left = Inbox<String>()
    private var followed: [ObjectIdentifier: String] = [:]
    private var connections: [ObjectIdentifier: FrameConnection] = [:]
    private var listener: SocketListener?

    init(loop: EventLoop) { self.loop = loop }

    private static let dispatcher: WireDispatcher<TestService, FrameConnection> = {
        var dispatcher = WireDispatcher<TestService, FrameConnection>(
            vendor: "Test", product: "Test", version: "1", url: "https://example.org",
            interfaces: [DeviceInterface.interface, ManagerInterface.interface])
        dispatcher.on(DeviceInterface.Describe.self) { service, connection, _, _ in
            service.send(
                connection, DeviceInterface.Describe.self,
                .init(device: "test", root: "/", version: "1", process: Int64(getpid()), developerMode: true))
        }
        dispatcher.on(DeviceInterface.Uninstall.self) { _, connection, header, parameters in
            connection.send(
                WireCodec.refusal(
                    of: header.method,
                    Refusal(code: 1005, reason: "\(parameters.app) is not installed", remedy: "install it first")))
        }
        dispatcher.on(DeviceInterface.Launch.self) { service, connection, _, parameters in
            service.launch(parameters.app, connection)
        }
        dispatcher.onStream(DeviceInterface.Apps.self) { service, connection, _, _ in
            for number in 1...3 {
                let app = DeviceInterface.App(
                    bundleIdentifier: "app\(number)", name: "", version: "", build: "", state: "ready",
                    launchable: true, reason: "", path: "", installedAt: 0, launchedAt: 1.5)
                service.send(connection, DeviceInterface.Apps.self, .init(apps: [app]), continues: number < 3)
            }
        }
        dispatcher.onStream(DeviceInterface.FollowInstall.self) { service, connection, _, parameters in
            connection.hold()
            service.followed[ObjectIdentifier(connection)] = parameters.install
            let update = DeviceInterface.InstallUpdate(
                install: parameters.install, app: "", phase: "asking", fraction: 0, received: 0, expected: 0,
                detail: "", code: 0, remedy: "")
            service.send(connection, DeviceInterface.FollowInstall.self, .init(update: update), continues: true)
        }
        return dispatcher
    }()

    private func send<M: WireMethod>(
        _ connection: FrameConnection, _ method: M.Type, _ reply: M.Reply, continues: Bool = false
    ) {
        do throws(WireError) {
            connection.send(try WireCodec.reply(method, reply, continues: continues))
        } catch {
            Issue.record("\(M.name) has no answer: \(error)")
        }
    }

    /// Answers in ways that a client must survive.
    private func launch(_ app: String, _ connection: FrameConnection) {
        switch app {
        case "silence": connection.hold()
        case "hangup": connection.close()
        case "nonsense": connection.send(Array("nonsense".utf8))
        case "stream":
            send(connection, DeviceInterface.Launch.self, .init(executable: "", environment: [:]), continues: true)
        case "long": connection.send([UInt8](repeating: 32, count: WireLimit.messageMax + 1))
        case "empty": connection.send(Array("{}".utf8))
        case "stranger": connection.send(Array(#"{"error":"org.example.Odd","parameters":{}}"#.utf8))
        case "later":
            connection.hold()
            Task(executorPreference: loop) {
                await self.loop.pause(for: .milliseconds(1))
                await self.answerLater(app, connection)
            }
        default:
            send(connection, DeviceInterface.Launch.self, .init(executable: "/" + app, environment: ["A": "1"]))
        }
    }

    private func answerLater(_ app: String, _ connection: FrameConnection) {
        send(connection, DeviceInterface.Launch.self, .init(executable: "/" + app, environment: [:]))
        connection.release()
    }

    /// Serves the socket at `path`.
    func listen(at path: String) throws {
        listener = try SocketListener(try UnixSocket.listen(at: path), on: loop) { [self] socket in
            let raw = socket.release()
            assumeIsolated { service in service.accept(raw) }
        }
    }

    func stop() {
        listener?.close()
        for connection in connections.values { connection.close() }
        connections = [:]
    }

    /// A new connection to this service, as a client has it.
    func connect() throws -> ServiceConnection {
        var pair = try UnixSocket.pair()
        accept(pair.takeFirst().release())
        return ServiceConnection(descriptor: pair.takeSecond())
    }

    private func accept(_ raw: Int32) {
        do throws(SystemCallError) {
            let connection = try FrameConnection(
                Descriptor(owning: raw), on: loop,
                limits: .init(
                    frameMax: WireLimit.messageMax + 1, congestedAbove: WireLimit.sendBufferMax,
                    stallMax: WireLimit.sendStallMax),
                handlers: .init(
                    received: { [self] connection, frame in
                        assumeIsolated { $0.receive(frame, connection) }
                    },
                    ended: { [self] connection, _ in assumeIsolated { $0.ended(connection) } }))
            connections[ObjectIdentifier(connection)] = connection
        } catch {
            Issue.record("a connection cannot be served: \(error)")
        }
    }

    private func receive(_ frame: UnsafeRawBufferPointer, _ connection: FrameConnection) {
        switch Self.dispatcher.receive(frame, from: connection, in: self) {
        case .taken, .nothing: break
        case .send(let answer): connection.send(answer)
        case .violation: connection.close()
        }
    }

    private func ended(_ connection: FrameConnection) {
        connections[ObjectIdentifier(connection)] = nil
        if let install = followed.removeValue(forKey: ObjectIdentifier(connection)) { left.put(install) }
    }
}

/// Calls `body` with a running service, which is stopped afterwards.
func withService(_ body: (TestService) async throws -> Void) async throws {
    let loop = try EventLoop.start(name: "test-service")
    defer { loop.stop() }
    let service = TestService(loop: loop)
    do { try await body(service) } catch {
        await service.stop()
        throw error
    }
    await service.stop()
}

/// Runs a blocking call on a thread of its own, as apps do; the cooperative pool must not wait.
func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        let work = Unmanaged.passRetained(ThreadWork { continuation.resume(with: Result(catching: body)) })
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { raw in
                if let raw { Unmanaged<ThreadWork>.fromOpaque(raw).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        precondition(code == 0)
        pthread_detach(thread)
    }
}

private final class ThreadWork: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// Events in the order they came; a test waits for the next one.
final class Inbox<Event: Sendable>: Sendable {
    private let stream: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func put(_ event: Event) { continuation.yield(event) }

    /// The next event; the time limit of the suite ends a wait in vain.
    func next() async throws -> Event {
        var iterator = stream.makeAsyncIterator()
        return try #require(await iterator.next())
    }
}

/// Calls `body` with a new folder, which is removed afterwards.
func withTemporaryFolder(_ body: (String) async throws -> Void) async throws {
    var template = Array(((getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/client-XXXXXX").utf8CString)
    _ = try #require(mkdtemp(&template))
    let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { removeTree(path) }
    try await body(path)
}

private func removeTree(_ path: String) {
    guard let folder = opendir(path) else {
        unlink(path)
        return
    }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name.0) { String(cString: $0) }
        guard name != ".", name != ".." else { continue }
        let inner = path + "/" + name
        // Links are removed, not followed.
        if entry.pointee.d_type == DT_DIR { removeTree(inner) } else { unlink(inner) }
    }
    rmdir(path)
}
