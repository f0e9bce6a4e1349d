// Connections of the service: accepting them, knowing who they are, and handing their calls on.
internal import AssetsModel
package import AssetsOS
internal import AssetsWire
internal import Glibc

/// The service's side of the wire.
///
/// Used on the service's executor only.
package final class WireEndpoint: @unchecked Sendable {
    // Sendable because every access is on the service's loop, which SocketListener and FrameConnection check.

    private static let limits = FrameConnection.Limits(
        frameMax: WireLimit.messageMax, congestedAbove: WireLimit.sendBufferMax, stallMax: WireLimit.sendStallMax)

    private let service: AssetsService
    private let loop: EventLoop
    private let dispatcher: WireDispatcher<AssetsService, Peer>
    private let extensionDispatcher: WireDispatcher<AssetsService, Peer>
    private var listener: SocketListener?
    private var peers: [Int: Peer] = [:]
    private var connectionsOfProcess: [Int32: Int] = [:]
    private var nextNumber = 1

    package init(service: AssetsService, loop: EventLoop, version: String) {
        self.service = service
        self.loop = loop
        dispatcher = Self.dispatcherOfProcesses(version: version)
        extensionDispatcher = Self.dispatcherOfExtensions(version: version)
    }

    /// What a process of the device's user may call.
    private static func dispatcherOfProcesses(version: String) -> WireDispatcher<AssetsService, Peer> {
        var dispatcher = dispatcher(
            version: version, interfaces: [DeviceInterface.interface, ManagerInterface.interface])
        serveDevice(&dispatcher, version: version)
        serveDeclaration(&dispatcher)
        serveManager(&dispatcher)
        return dispatcher
    }

    /// What an extension may call: its download manager. The device is not its business, nor are other apps.
    private static func dispatcherOfExtensions(version: String) -> WireDispatcher<AssetsService, Peer> {
        var dispatcher = dispatcher(version: version, interfaces: [ManagerInterface.interface])
        serveManager(&dispatcher)
        return dispatcher
    }

    private static func dispatcher(version: String, interfaces: [String]) -> WireDispatcher<AssetsService, Peer> {
        WireDispatcher(
            vendor: "Background Assets", product: "backgroundassetsd", version: version, url: "",
            interfaces: interfaces)
    }

    /// True while anybody is connected.
    package var hasClients: Bool { !peers.isEmpty }

    /// Accepts clients of the device's user. Call on the loop.
    package func listen(on socket: consuming Descriptor) throws(SystemCallError) {
        listener = try SocketListener(socket, on: loop) { [self] connection in accept(connection) }
    }

    /// Stops listening when nobody waits to be accepted; else accepts them and answers false. The caller has removed the
    /// socket's name, so that later clients find no service instead of one that is about to leave.
    package func closeIfUnwanted() -> Bool {
        guard let listener else { return true }
        guard !listener.acceptLast(), !hasClients else { return false }
        listener.close()
        self.listener = nil
        return true
    }

    package func close() {
        listener?.close()
        listener = nil
        for number in peers.keys.sorted() {
            peers[number]?.connection?.close()
            ended(number)
        }
    }

    /// Takes over the service's end of a socket that an extension inherited.
    package func adopt(_ socket: consuming Descriptor, extensionOf app: String) {
        open(socket, origin: .extensionOf(app: app), process: nil)
    }

    private func accept(_ socket: consuming Descriptor) {
        guard let credentials = try? UnixSocket.peerCredentials(socket) else { return }
        let process = credentials.process
        guard credentials.user == geteuid() else {
            return note(.clientRefused, "a process of user \(credentials.user)")
        }
        guard peers.count < WireLimit.connectionsMax,
            connectionsOfProcess[process, default: 0] < WireLimit.connectionsOfClientMax
        else {
            return note(.clientRefused, "process \(process) has too many connections, or all have")
        }
        open(socket, origin: .process(pid: process, executable: executable(of: process)), process: process)
    }

    private func open(_ socket: consuming Descriptor, origin: Peer.Origin, process: Int32?) {
        let number = nextNumber
        nextNumber += 1
        let peer = Peer(number: number, origin: origin, loop: loop)
        let handlers = FrameConnection.Handlers(
            received: { [self] _, frame in receive(frame, from: peer) },
            drained: { _ in peer.didDrain() },
            ended: { [self] _, end in
                if end != .closed { note(.clientCutOff, "\(end)") }
                ended(number)
            })
        guard let connection = try? FrameConnection(socket, on: loop, limits: Self.limits, handlers: handlers) else {
            return note(.clientRefused, "its socket cannot be watched")
        }
        peer.connection = connection
        peers[number] = peer
        if let process { connectionsOfProcess[process, default: 0] += 1 }
        service.assumeIsolated { $0.activityChanged?() }
    }

    private func receive(_ frame: UnsafeRawBufferPointer, from peer: Peer) {
        peer.connection?.hold()
        // Used inside this call only.
        nonisolated(unsafe) let frame = frame
        let dispatcher = peer.isExtension ? extensionDispatcher : dispatcher
        let outcome = service.assumeIsolated { dispatcher.receive(frame, from: peer, in: $0) }
        switch outcome {
        case .taken: break
        case .send(let answer):
            peer.connection?.send(answer)
            peer.connection?.release()
        case .nothing: peer.connection?.release()
        case .violation(let error):
            note(.clientCutOff, "not a varlink message: \(error)")
            peer.connection?.close()
            ended(peer.number)
        }
    }

    private func ended(_ number: Int) {
        guard let peer = peers.removeValue(forKey: number) else { return }
        if case .process(let pid, _) = peer.origin, let count = connectionsOfProcess[pid] {
            connectionsOfProcess[pid] = count > 1 ? count - 1 : nil
        }
        peer.connection = nil
        peer.didDrain()
        let bodies = peer.whenEnded
        peer.whenEnded = []
        service.assumeIsolated { service in
            for body in bodies { body(service) }
            service.activityChanged?()
        }
    }

    private func note(_ event: JournalEvent, _ detail: String) {
        service.assumeIsolated { $0.journal(event, .invalid, detail) }
    }

    /// Empty when it cannot be read: then the process is nobody's app.
    private func executable(of process: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/\(process)/exe", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : ""
    }
}

extension AssetsService {
    /// Runs a method's body and sends its reply or refusal.
    nonisolated func answer<M: WireMethod>(
        _ method: M.Type, _ header: CallHeader, to peer: Peer,
        _ body: @escaping @Sendable (isolated AssetsService) async throws(AssetsError) -> M.Reply
    ) {
        launch { service in
            do throws(AssetsError) { peer.reply(method, try await body(service), to: header) } catch {
                peer.refuse(header, error)
            }
        }
    }

    /// Sends a list as pages; `page` gets the last item's place and answers no more than a page.
    nonisolated func answerPages<M: WireMethod, Item: Sendable>(
        _ method: M.Type, _ header: CallHeader, to peer: Peer, wrap: @escaping @Sendable ([Item]) -> M.Reply,
        _ page: @escaping @Sendable (isolated AssetsService, Item?) async throws(AssetsError) -> [Item]
    ) {
        launch { service in
            do throws(AssetsError) {
                var items = try await page(service, nil)
                while items.count == WireLimit.pageMax, peer.isOpen {
                    let next = try await page(service, items.last)
                    guard !next.isEmpty else { break }
                    peer.stream(method, wrap(items))
                    await peer.drained()
                    items = next
                }
                peer.reply(method, wrap(items), to: header)
            } catch { peer.refuse(header, error) }
        }
    }
}
