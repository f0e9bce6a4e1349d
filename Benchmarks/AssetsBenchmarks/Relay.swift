// Between clients and a server: a longer way, and one on which connections end.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

/// A port of this machine that leads to another one. What it takes it gives on after a while, as a long cable does, and it
/// ends its connections when it is told to, as servers do.
final class Relay: Sendable {
    fileprivate struct Orders {
        var hangUp: HangUp?
        /// New connections are taken, but lead nowhere yet.
        var holds = false
        var isOver = false
        // What the thread tells.
        var hasHeld = false
        var hasLeft = false
    }

    /// How connections end.
    struct HangUp {
        var time: Duration
        /// By a reset, else as after an answer's end.
        var resets: Bool
    }

    private static let look: useconds_t = 50

    let port: UInt16
    private let orders = Guarded(Orders())

    /// `delay` is that of each direction.
    init(to server: UInt16, delay: Duration = .zero) throws {
        let listener = try SilentPort()
        port = listener.port
        let thread = RelayThread(
            listener: listener.intoSocket(), server: server, delay: delay, orders: orders)
        try SideThread.start { thread.run() }
    }

    func stop() {
        orders.withLock { $0.isOver = true }
        while !orders.withLock({ $0.hasLeft }) { usleep(Self.look) }
    }

    /// Ends all connections at a moment; new ones lead nowhere until `goOn`.
    func hangUp(_ hangUp: HangUp) {
        orders.withLock { orders in
            orders.hangUp = hangUp
            orders.holds = true
            orders.hasHeld = false
        }
    }

    /// Waits until somebody has connected again after a hang-up.
    func waitForNext(within limit: Duration) throws {
        let deadline = Deadline(in: limit)
        while !orders.withLock({ $0.hasHeld }) {
            guard !deadline.hasPassed else { throw BenchError("nobody connects again within \(limit)") }
            usleep(Self.look)
        }
    }

    func goOn() { orders.withLock { $0.holds = false } }
}

/// What the relay's thread has; used there only.
///
/// Unchecked: it is handed to its thread by who made it, and then that has it alone. The orders have a lock.
private final class RelayThread: @unchecked Sendable {
    /// As much as a window of TCP: who does not read holds up the server.
    private static let queuedMax = 4 << 20
    private static let pieceBytes = 64 << 10
    private static let patience: Int32 = 1

    /// One direction of a connection.
    private final class Way {
        let from: Int32
        let to: Int32
        var pieces: [(due: Duration, bytes: ArraySlice<UInt8>)] = []
        var queued = 0
        var isAtEnd = false

        init(from: Int32, to: Int32) {
            self.from = from
            self.to = to
        }
    }

    private let listener: Int32
    private let server: UInt16
    private let delay: Duration
    private let orders: Guarded<Relay.Orders>
    private var links: [[Way]] = []
    private var held: [Int32] = []
    private var piece = [UInt8](repeating: 0, count: pieceBytes)

    init(listener: Int32, server: UInt16, delay: Duration, orders: Guarded<Relay.Orders>) {
        self.listener = listener
        self.server = server
        self.delay = delay
        self.orders = orders
    }

    func run() {
        while true {
            let orders = self.orders.withLock { $0 }
            if orders.isOver { break }
            if let hangUp = orders.hangUp, MonotonicClock.now >= hangUp.time {
                self.orders.withLock { $0.hangUp = nil }
                for link in links { close(link, resets: hangUp.resets) }
                links = []
            }
            // Before a hang-up whoever comes belongs to what will be ended.
            if !orders.holds || orders.hangUp != nil { for client in held { join(client) } }
            if !orders.holds { held = [] }
            waitAndMove()
        }
        for link in links { close(link, resets: false) }
        for client in held { Glibc.close(client) }
        Glibc.close(listener)
        orders.withLock { $0.hasLeft = true }
    }

    private func waitAndMove() {
        var watched = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        let ways = links.flatMap { $0 }
        let now = MonotonicClock.now
        for way in ways {
            let takes = way.queued < Self.queuedMax && !way.isAtEnd
            watched.append(pollfd(fd: takes ? way.from : -1, events: Int16(POLLIN), revents: 0))
            let gives = way.pieces.first.map { $0.due <= now } ?? false
            watched.append(pollfd(fd: gives ? way.to : -1, events: Int16(POLLOUT), revents: 0))
        }
        poll(&watched, nfds_t(watched.count), Self.patience)
        if watched[0].revents != 0 { accept() }
        var ended: Set<Int32> = []
        for (index, way) in ways.enumerated() {
            if watched[1 + 2 * index].revents != 0, !take(way) { ended.insert(way.from) }
            if watched[2 + 2 * index].revents != 0, !give(way) { ended.insert(way.from) }
            if way.isAtEnd, way.pieces.isEmpty { ended.insert(way.from) }
        }
        for link in links where link.contains(where: { ended.contains($0.from) }) { close(link, resets: false) }
        links.removeAll { link in link.contains { ended.contains($0.from) } }
    }

    private func accept() {
        let client = Glibc.accept(listener, nil, nil)
        guard client >= 0 else { return }
        let isHeld = orders.withLock { orders in
            let isHeld = orders.holds && orders.hangUp == nil
            if isHeld { orders.hasHeld = true }
            return isHeld
        }
        if isHeld { held.append(client) } else { join(client) }
    }

    private func join(_ client: Int32) {
        guard let socket = try? LoopbackClient.connect(to: server) else {
            Glibc.close(client)
            return
        }
        let other = socket.release()
        links.append([Way(from: client, to: other), Way(from: other, to: client)])
    }

    /// False when the connection is over.
    private func take(_ way: Way) -> Bool {
        let count = recv(way.from, &piece, piece.count, Int32(MSG_DONTWAIT))
        guard count >= 0 else { return errno == EAGAIN || errno == EINTR }
        way.isAtEnd = count == 0
        guard count > 0 else { return true }
        way.pieces.append((MonotonicClock.now + delay, ArraySlice(Array(piece[..<count]))))
        way.queued += count
        return true
    }

    private func give(_ way: Way) -> Bool {
        while let first = way.pieces.first, first.due <= MonotonicClock.now {
            let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
            let count = first.bytes.withUnsafeBytes { send(way.to, $0.baseAddress, $0.count, flags) }
            guard count >= 0 else { return errno == EAGAIN || errno == EINTR }
            way.queued -= count
            way.pieces[0].bytes = first.bytes.dropFirst(count)
            guard way.pieces[0].bytes.isEmpty else { return true }
            way.pieces.removeFirst()
        }
        return true
    }

    private func close(_ link: [Way], resets: Bool) {
        for way in link {
            if resets {
                var hard = linger(l_onoff: 1, l_linger: 0)
                setsockopt(way.from, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
            }
            Glibc.close(way.from)
        }
    }
}
