// One running extension: its process, its entry-point socket, its memory and what it prints.
package import AssetsModel
package import AssetsOS
internal import Glibc

/// A launched extension, from spawn to reaping: frames go to its entry-point socket and come from it.
///
/// Used on the service's executor only.
package final class ExtensionProcess: @unchecked Sendable {
    // Sendable because every access is on the service's loop, which FrameConnection and EventLoop check.

    /// Bytes of one line of output; the rest of it is dropped.
    private static let outputLineMax = 1024
    /// Lines of output kept of one run.
    private static let outputLinesMax = 200

    package let child: ChildProcess
    let loop: EventLoop
    private var connection: FrameConnection?
    private let output: Descriptor
    private var partialLine: [UInt8] = []
    private var linesLeft = outputLinesMax
    private let print: @Sendable (String) -> Void

    package private(set) var exit: ChildExit?
    private var frameWaiter: CheckedContinuation<[UInt8]?, Never>?
    /// Came before somebody asked for it. One: nothing more is read until it was taken.
    private var earlyFrame: [UInt8]?
    /// An entry point runs: only then it has anything to say.
    private var isAsked = false
    /// Why we killed it, where the process itself gave the reason.
    package private(set) var violation: String?
    /// The answer to the announcement of its end, and who waits for it.
    private var endAnswer: (frame: [UInt8], noted: () -> Void)?
    /// Told of the reaped process, after everybody who waits in a call.
    package var whenReaped: (@Sendable (ExtensionProcess) -> Void)?

    private let memory: ProcessMemory?
    private var rule = MemoryRule()
    private var memoryTimer: TimerToken?
    private let memoryChanged: @Sendable (MemoryRule.Verdict, _ peak: Int64) -> Void
    var stopAttempt = 0

    /// The most memory of its own that was seen, in bytes.
    package var memoryPeak: Int64 { rule.peak }

    /// Takes over a child, the service's end of its entry-point socket and the reading end of its output.
    package init(
        child: consuming ChildProcess, entry: consuming Descriptor, output: consuming Descriptor, loop: EventLoop,
        limits: FrameConnection.Limits, print: @escaping @Sendable (String) -> Void,
        memoryChanged: @escaping @Sendable (MemoryRule.Verdict, _ peak: Int64) -> Void = { _, _ in }
    ) throws(SystemCallError) {
        self.child = child
        self.memoryChanged = memoryChanged
        // A process that has ended already has nothing to be watched.
        memory = try? ProcessMemory(of: self.child.process)
        self.output = output
        self.loop = loop
        self.print = print
        connection = try FrameConnection(
            entry, on: loop, limits: limits,
            handlers: .init(
                received: { [self] _, frame in received(Array(frame)) },
                ended: { [self] _, _ in received(nil) }))
        try self.child.whenEnded(on: loop) { [self] in ended($0) }
        try UnixSocket.setNonblocking(self.output)
        try loop.watch(self.output.rawValue, for: .read) { [self] _ in readOutput() }
    }

    // MARK: Frames

    package func send(_ frame: [UInt8]) { connection?.send(frame) }

    /// The next frame, or nil when the extension is gone.
    package func nextFrame() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if let frame = earlyFrame {
                earlyFrame = nil
                connection?.release()
                continuation.resume(returning: frame)
            } else if connection?.isOpen == true {
                frameWaiter = continuation
            } else {
                continuation.resume(returning: nil)
            }
        }
    }

    /// False when it has said something that nobody asked for.
    package func beginCall() -> Bool {
        guard earlyFrame == nil else { return false }
        isAsked = true
        return true
    }

    package func endCall() { isAsked = false }

    private func received(_ frame: [UInt8]?) {
        if let answer = endAnswer, frame == answer.frame {
            endAnswer = nil
            return answer.noted()
        }
        if let waiter = frameWaiter {
            frameWaiter = nil
            waiter.resume(returning: frame)
        } else if let frame {
            connection?.hold()
            earlyFrame = frame
            guard !isAsked, violation == nil else { return }
            violation = "it spoke without being asked"
            kill()
        }
    }

    // MARK: The end

    package func kill() { child.sendToGroup(signal: SIGKILL) }

    /// Tells of its end. Where an entry point runs its answer may come before or after this one's.
    package func announceEnd(_ frame: [UInt8], answer: [UInt8], noted: @escaping () -> Void) {
        endAnswer = (answer, noted)
        send(frame)
    }

    /// Asks by closing the entry-point socket, at which the runtime exits.
    package func closeEntry() {
        connection?.close()
        connection = nil
        received(nil)
    }

    private func ended(_ exit: ChildExit) {
        // What it left in its process group goes with it.
        child.sendToGroup(signal: SIGKILL)
        readOutput()
        if !partialLine.isEmpty { printLine() }
        loop.unwatch(output.rawValue)
        self.exit = exit
        unwatchMemory()
        closeEntry()
        whenReaped?(self)
        whenReaped = nil
    }

    // MARK: Memory

    /// Looks at its memory every few milliseconds from now on: what it does in between is bounded by its resource limits.
    package func watchMemory() {
        guard memoryTimer == nil, exit == nil else { return }
        lookAtMemory()
    }

    /// A stopped process takes none.
    package func unwatchMemory() {
        if let memoryTimer { loop.cancel(memoryTimer) }
        memoryTimer = nil
    }

    private func lookAtMemory() {
        memoryTimer = nil
        guard let use = memory?.read() else { return }
        let verdict = rule.observe(use)
        if verdict != .fine { memoryChanged(verdict, rule.peak) }
        // Who has too much is being killed.
        guard verdict != .tooMuch else { return }
        memoryTimer = loop.schedule(after: PolicyNumbers.memoryLook) { [weak self] in self?.lookAtMemory() }
    }

    // MARK: Output

    private func readOutput() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(output.rawValue, &buffer, buffer.count)
            guard count > 0 else {
                if count == 0 { loop.unwatch(output.rawValue) }
                return
            }
            for byte in buffer.prefix(count) {
                if byte == UInt8(ascii: "\n") {
                    printLine()
                } else if partialLine.count < Self.outputLineMax {
                    partialLine.append(byte)
                }
            }
        }
    }

    private func printLine() {
        let line = String(decoding: partialLine, as: UTF8.self)
        partialLine = []
        guard linesLeft > 0 else { return }
        linesLeft -= 1
        print(linesLeft == 0 ? "(further output is dropped)" : line)
    }
}
