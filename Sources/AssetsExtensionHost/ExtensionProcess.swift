// One running extension: its process, its entry-point socket and what it prints.
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
    private let loop: EventLoop
    private var connection: FrameConnection?
    private let output: Descriptor
    private var partialLine: [UInt8] = []
    private var linesLeft = outputLinesMax
    private let print: @Sendable (String) -> Void

    package private(set) var exit: ChildExit?
    private var exitWaiters: [CheckedContinuation<Void, Never>] = []
    private var frameWaiter: CheckedContinuation<[UInt8]?, Never>?
    private var frames: [[UInt8]] = []

    /// Takes over a child, the service's end of its entry-point socket and the reading end of its output.
    package init(
        child: consuming ChildProcess, entry: consuming Descriptor, output: consuming Descriptor, loop: EventLoop,
        limits: FrameConnection.Limits, print: @escaping @Sendable (String) -> Void
    ) throws(SystemCallError) {
        self.child = child
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
            if !frames.isEmpty {
                continuation.resume(returning: frames.removeFirst())
            } else if connection?.isOpen == true {
                frameWaiter = continuation
            } else {
                continuation.resume(returning: nil)
            }
        }
    }

    private func received(_ frame: [UInt8]?) {
        if let waiter = frameWaiter {
            frameWaiter = nil
            waiter.resume(returning: frame)
        } else if let frame {
            frames.append(frame)
        }
    }

    // MARK: The end

    package func kill() { child.sendToGroup(signal: SIGKILL) }

    /// Asks by closing the entry-point socket, at which the runtime exits.
    package func closeEntry() {
        connection?.close()
        connection = nil
        received(nil)
    }

    /// Returns when the process was reaped.
    package func reaped() async {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if exit == nil { exitWaiters.append(continuation) } else { continuation.resume() }
        }
    }

    private func ended(_ exit: ChildExit) {
        // What it left in its process group goes with it.
        child.sendToGroup(signal: SIGKILL)
        readOutput()
        if !partialLine.isEmpty { printLine() }
        loop.unwatch(output.rawValue)
        self.exit = exit
        closeEntry()
        let waiters = exitWaiters
        exitWaiters = []
        for waiter in waiters { waiter.resume() }
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
