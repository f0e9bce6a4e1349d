// The network of a simulation: responses of the scripted server, delivered on virtual time.
internal import AssetsModel
internal import AssetsOS
package import AssetsTransfer

/// Brings what a scripted server answers, piece by piece.
///
/// Unchecked: made for one executor, on which every call and every timer is.
final class ScriptedTransport: Transport, @unchecked Sendable {
    /// Bytes of a piece where the server knows no limit.
    private static let pieceMax = 64 << 10
    /// Between two pieces of a limited server.
    private static let pieceTime = Duration.milliseconds(50)

    private struct Running {
        let handler: any TransportHandler
        let request: TransportRequest
        var reply: ScriptedServer.Reply
        var timer: TimerToken?
        var isPaused = false
        /// When a body that comes too slowly counts as stalled.
        var stallsAt: Duration?
    }

    private let loop: any LoopExecutor
    private var server: ScriptedServer?
    private var running: [UInt64: Running] = [:]
    private var lastNumber: UInt64 = 0

    init(_ server: ScriptedServer, on loop: any LoopExecutor) {
        self.server = server
        self.loop = loop
    }

    // MARK: Transport

    func start(_ request: TransportRequest, handler: any TransportHandler) -> TransportTask {
        guard let server else { preconditionFailure("a request after stop") }
        lastNumber += 1
        let number = lastNumber
        running[number] = Running(handler: handler, request: request, reply: server.reply(to: request))
        plan(number, after: running[number]?.reply.latency ?? .zero) { $0.begin(number) }
        return TransportTask(number: number)
    }

    func cancel(_ task: TransportTask) { end(task.number, ServerEnd.cancelled) }

    func pause(_ task: TransportTask) { running[task.number]?.isPaused = true }

    func resume(_ task: TransportTask) {
        guard running[task.number]?.isPaused == true else { return }
        running[task.number]?.isPaused = false
        if running[task.number]?.timer == nil { plan(task.number, after: .zero) { $0.send(task.number) } }
    }

    /// The simulated network knows no priorities.
    func setDiscretionary(_ task: TransportTask, _ isDiscretionary: Bool) {}

    /// The simulated machine has one address: without it no connection stands.
    func dropConnections(keeping addresses: [String]) {
        guard addresses.allSatisfy({ $0.hasPrefix("127.") }) else { return }
        for number in running.keys.sorted() { end(number, .told(ScriptedServer.broken)) }
    }

    func stop() {
        for number in running.keys.sorted() { cancel(TransportTask(number: number)) }
        server = nil
    }

    // MARK: The response

    private enum ServerEnd: Equatable {
        case cancelled
        case told(TransportFailure?)
    }

    private func plan(_ number: UInt64, after delay: Duration, _ body: @escaping @Sendable (ScriptedTransport) -> Void)
    {
        running[number]?.timer = loop.schedule(after: delay) { [self] in
            running[number]?.timer = nil
            body(self)
        }
    }

    private func begin(_ number: UInt64) {
        guard let exchange = running[number] else { return }
        guard server?.isReachable == true else { return end(number, .told(ScriptedServer.offline)) }
        guard let head = exchange.reply.head else { return end(number, .told(exchange.reply.failure)) }
        if let rate = exchange.reply.bytesPerSecond, rate < exchange.request.stallRate {
            running[number]?.stallsAt = loop.now + exchange.request.stallTimeout
        }
        exchange.handler.received(head)
        // The handler may have cancelled it, or put something in its place.
        if running[number] != nil { plan(number, after: .zero) { $0.send(number) } }
    }

    private func send(_ number: UInt64) {
        guard let exchange = running[number], !exchange.isPaused else { return }
        guard server?.isReachable == true else { return end(number, .told(ScriptedServer.broken)) }
        guard !exchange.reply.body.isEmpty else { return end(number, .told(exchange.reply.failure)) }
        if let stallsAt = exchange.stallsAt, loop.now >= stallsAt {
            return end(
                number,
                .told(TransportFailure(kind: .stall, code: URLErrorCode.timedOut, text: "too few bytes for too long")))
        }
        var count = Self.pieceMax
        if let rate = exchange.reply.bytesPerSecond { count = rate == 0 ? 0 : max(1, rate / 20) }
        let piece = exchange.reply.body.prefix(count)
        running[number]?.reply.body = exchange.reply.body.dropFirst(count)
        server?.sent(piece.count, of: exchange.reply.exchange)
        if !piece.isEmpty { piece.withUnsafeBytes { exchange.handler.received($0) } }
        let delay = exchange.reply.bytesPerSecond == nil ? Duration.zero : Self.pieceTime
        if running[number] != nil { plan(number, after: delay) { $0.send(number) } }
    }

    private func end(_ number: UInt64, _ why: ServerEnd) {
        guard let exchange = running.removeValue(forKey: number) else { return }
        if let timer = exchange.timer { loop.cancel(timer) }
        switch why {
        case .cancelled:
            server?.ended(
                exchange.reply.exchange,
                TransportFailure(kind: .cancelled, code: URLErrorCode.cancelled, text: "cancelled"))
        case .told(let failure):
            server?.ended(exchange.reply.exchange, failure)
            exchange.handler.ended(failure)
        }
    }
}

extension ScriptedServer {
    /// Makes a transport for each engine.
    package var transport: TransportFactory { { ScriptedTransport(self, on: $0) } }
}
