// A connection of the service: frames that end with NUL on a nonblocking unix socket, driven by an event loop.
internal import Glibc

/// Receives and sends frames on an event loop.
///
/// A call that is answered at once costs one wait, one read and one write. While replies wait to be taken, nothing is
/// read. Between `hold()` and `release()` no further frame is delivered: that is how the owner answers one call after
/// the other. The loop keeps the connection alive until it ends or is closed.
///
/// All members are used on the loop only, which each of them checks.
package final class FrameConnection: @unchecked Sendable {
    // Sendable because every access is on the loop's one thread: `checkIsolated` stops the process otherwise.

    /// What a peer may do.
    package struct Limits: Hashable, Sendable {
        /// Bytes of one frame without its NUL.
        package var frameMax: Int
        /// Waiting bytes above which the connection is congested.
        package var congestedAbove: Int
        /// Waiting bytes at which it is cut off: the owner sent on in spite of the congestion.
        package var waitingMax: Int
        /// Time in which the peer must take something.
        package var stallMax: Duration

        package init(frameMax: Int, congestedAbove: Int, stallMax: Duration) {
            self.frameMax = frameMax
            self.congestedAbove = congestedAbove
            waitingMax = congestedAbove + 4 * frameMax
            self.stallMax = stallMax
        }
    }

    /// Why a connection ended.
    package enum End: Hashable, Sendable {
        /// The peer closed.
        case closed
        /// The peer closed in the middle of a frame.
        case truncated
        /// A frame is longer than allowed.
        case frameTooLong
        /// The peer took nothing for too long.
        case stalled
        /// More waited to be sent than may.
        case overflow
        case failed(SystemCallError)
    }

    /// What the owner is told, always on the loop and never from inside one of its own calls.
    package struct Handlers: Sendable {
        /// A frame without its NUL; the bytes are valid during the call only.
        package var received: @Sendable (FrameConnection, sending UnsafeRawBufferPointer) -> Void
        /// The connection was congested, and now everything was taken.
        package var drained: @Sendable (FrameConnection) -> Void
        /// It is over; nothing follows. Not called after `close()`.
        package var ended: @Sendable (FrameConnection, End) -> Void

        package init(
            received: @escaping @Sendable (FrameConnection, sending UnsafeRawBufferPointer) -> Void,
            drained: @escaping @Sendable (FrameConnection) -> Void = { _ in },
            ended: @escaping @Sendable (FrameConnection, End) -> Void
        ) {
            self.received = received
            self.drained = drained
            self.ended = ended
        }
    }

    private let loop: EventLoop
    private let limits: Limits
    private var handlers: Handlers?
    private var socket: Descriptor?
    private var incoming: ReceiveBuffer
    private var outgoing = SendBuffer()
    private var interest: EventLoop.Readiness = .read
    private var isHeld = false
    private var isDelivering = false
    private var isDeliveryDue = false
    /// Closes once everything was taken.
    private var isFinishing = false
    private var wasCongested = false
    private var lastProgress = Duration.zero
    private var stallTimer: TimerToken?

    /// Takes over a connected stream socket. Call on the loop.
    package init(
        _ socket: consuming Descriptor, on loop: EventLoop, limits: Limits, handlers: Handlers
    ) throws(SystemCallError) {
        loop.checkIsolated()
        try UnixSocket.setNonblocking(socket)
        self.loop = loop
        self.limits = limits
        self.handlers = handlers
        let raw = socket.rawValue
        self.socket = consume socket
        incoming = ReceiveBuffer(frameMax: limits.frameMax)
        try loop.watch(raw, for: .read) { [self] readiness in ready(readiness) }
    }

    // MARK: For the owner

    package var isOpen: Bool {
        loop.checkIsolated()
        return socket != nil
    }

    /// Bytes that wait until the peer takes them.
    package var waiting: Int {
        loop.checkIsolated()
        return outgoing.count
    }

    /// True while more waits than should: hold streams back until `drained`.
    package var isCongested: Bool {
        loop.checkIsolated()
        return outgoing.count > limits.congestedAbove
    }

    /// Sends a frame, given without its NUL, and descriptors with its first byte. Nothing happens once it has ended.
    package func send(_ frame: consuming [UInt8], descriptors: [SharedDescriptor] = []) {
        loop.checkIsolated()
        guard socket != nil, !isFinishing else { return }
        frame.append(0)
        guard outgoing.count + frame.count <= limits.waitingMax else { return endSoon(.overflow) }
        if outgoing.count > 0 {
            outgoing.append(frame, descriptors: descriptors)
        } else {
            sendDirectly(frame, descriptors)
        }
        wasCongested = wasCongested || outgoing.count > limits.congestedAbove
    }

    /// Delivers no frame until `release()`.
    package func hold() {
        loop.checkIsolated()
        isHeld = true
    }

    package func release() {
        loop.checkIsolated()
        guard isHeld else { return }
        isHeld = false
        guard socket != nil, !isDelivering, outgoing.count == 0 else { return }
        setInterest(.read)
        if !incoming.isEmpty { deliverSoon() }
    }

    /// Ends, as `closed`, once everything that was sent has been taken; no frame is delivered any more.
    package func finish() {
        loop.checkIsolated()
        guard !isFinishing else { return }
        isFinishing = true
        if outgoing.count == 0 { endSoon(.closed) }
    }

    /// Closes at once. No handler is called any more.
    package func close() {
        loop.checkIsolated()
        guard let socket = socket.take() else { return }
        loop.unwatch(socket.rawValue)
        if let stallTimer { loop.cancel(stallTimer) }
        stallTimer = nil
        handlers = nil
        outgoing = SendBuffer()
    }

    // MARK: Events

    private func ready(_ readiness: EventLoop.Readiness) {
        let isGone = !readiness.isDisjoint(with: [.hangUp, .error])
        if outgoing.count > 0 {
            // Replies wait; a peer that is gone will not take them.
            return isGone ? end(.closed) : flush()
        }
        if isHeld {
            // Nothing is read now. The interest in it is dropped only here, so that a call that waits for its answer,
            // as clients do, costs no system call.
            return isGone ? end(.closed) : setInterest([])
        }
        receive()
    }

    private func receive() {
        guard let raw = rawSocket else { return }
        let room = incoming.room()
        do throws(SystemCallError) {
            let count = try check("read") { read(raw, room.baseAddress, room.count) }
            guard count > 0 else { return end(incoming.isEmpty ? .closed : .truncated) }
            incoming.filled(count)
        } catch {
            if error.number == EAGAIN { return }
            return end(error.number == ECONNRESET ? .closed : .failed(error))
        }
        deliver()
    }

    private func deliver() {
        isDelivering = true
        while socket != nil, !isHeld, !isFinishing, outgoing.count == 0, let frame = incoming.nextFrame() {
            guard frame.count <= limits.frameMax else {
                end(.frameTooLong)
                break
            }
            handlers?.received(self, frame)
        }
        isDelivering = false
        if socket != nil, incoming.isOverfull { end(.frameTooLong) }
    }

    private func deliverSoon() {
        guard !isDeliveryDue else { return }
        isDeliveryDue = true
        _ = loop.schedule(at: .zero) { [self] in
            isDeliveryDue = false
            deliver()
        }
    }

    // MARK: Sending

    /// The usual case: nothing waits, and the socket takes everything.
    private func sendDirectly(_ frame: [UInt8], _ descriptors: [SharedDescriptor]) {
        do throws(SystemCallError) {
            let count = try sendNow(frame, descriptors)
            guard count < frame.count else { return }
            outgoing.append(frame[count...], descriptors: count == 0 ? descriptors : [])
            lastProgress = loop.now
            watchForStall()
            setInterest(.write)
        } catch {
            endSoon(Self.reason(error))
        }
    }

    private func sendNow(_ frame: [UInt8], _ descriptors: [SharedDescriptor]) throws(SystemCallError) -> Int {
        switch socket {
        case .some(let open): try SendBuffer.send(frame, frame.startIndex..<frame.endIndex, descriptors, to: open)
        case nil: 0
        }
    }

    private func flush() {
        do throws(SystemCallError) {
            guard try flushNow() > 0 else { return }
            lastProgress = loop.now
        } catch {
            return end(Self.reason(error))
        }
        guard outgoing.count == 0 else { return }
        if let stallTimer { loop.cancel(stallTimer) }
        stallTimer = nil
        if isFinishing { return end(.closed) }
        setInterest(isHeld ? [] : .read)
        if wasCongested {
            wasCongested = false
            handlers?.drained(self)
        }
        deliver()
    }

    private func flushNow() throws(SystemCallError) -> Int {
        switch socket {
        case .some(let open): try outgoing.flush(to: open)
        case nil: 0
        }
    }

    private func watchForStall() {
        stallTimer = loop.schedule(at: lastProgress + limits.stallMax) { [self] in
            stallTimer = nil
            guard socket != nil, outgoing.count > 0 else { return }
            if loop.now - lastProgress >= limits.stallMax { end(.stalled) } else { watchForStall() }
        }
    }

    /// A peer that closed while we sent has closed, nothing more.
    private static func reason(_ error: SystemCallError) -> End {
        error.number == EPIPE || error.number == ECONNRESET ? .closed : .failed(error)
    }

    // MARK: The end

    private func end(_ reason: End) {
        let ended = handlers?.ended
        close()
        ended?(self, reason)
    }

    /// Ends from inside a call of the owner, who is told when that has returned.
    private func endSoon(_ reason: End) {
        _ = loop.schedule(at: .zero) { [self] in end(reason) }
    }

    private var rawSocket: Int32? {
        switch socket {
        case .some(let open): open.rawValue
        case nil: nil
        }
    }

    private func setInterest(_ wanted: EventLoop.Readiness) {
        guard interest != wanted, let raw = rawSocket else { return }
        do throws(SystemCallError) {
            try loop.watch(raw, for: wanted) { [self] readiness in ready(readiness) }
            interest = wanted
        } catch {
            endSoon(.failed(error))
        }
    }
}
