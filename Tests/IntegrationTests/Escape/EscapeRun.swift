// Starts the fixture extension as the service does, and waits for its end.
import AssetsExtensionHost
import AssetsOS
import AssetsSandbox
import CLinux
import Foundation
import Glibc

/// One process of the fixture extension: what it said and how it ended.
struct EscapeRun {
    /// Milliseconds that a probe may take; none waits for anything.
    private static let patience: Int32 = 60_000

    let output: [String]
    let exit: String
    let signal: Int32?

    /// Runs it to its end.
    ///
    /// - Parameters:
    ///   - lock: Path of the container's lock file.
    ///   - left: Descriptors that are left open in the extension, as a careless service would do.
    init(_ box: SandboxDescription, in sandbox: ExtensionSandbox, lock: String, leaving left: [Int32]) throws {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let sockets = try (0..<3).map { _ in try RawPair("socketpair") { socketpair(AF_UNIX, kind, 0, $0) } }
        let journal = try RawPair("pipe2") { clinux_pipe2($0, Int32(O_CLOEXEC)) }
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let held = try ContainerLock(path: lock)
        let descriptors =
            [null.rawValue, journal.second, journal.second] + sockets.map(\.second) + [held.descriptor.rawValue]
        let child =
            left.isEmpty
            ? try sandbox.start(box, descriptors: descriptors) : try Self.start(box, descriptors, leaving: left)
        journal.closeSecond()
        let ended = try Self.waitForEnd(of: child)
        // What it left in its group would keep the journal open.
        child.sendToGroup(signal: SIGKILL)
        output = Self.lines(journal.first)
        exit = ended.description
        if case .killed(let number) = ended { signal = number } else { signal = nil }
        // The service's ends stay open for as long as the extension runs.
        withExtendedLifetime(sockets) {}
    }

    /// As the sandbox starts it, with more descriptors after those that the launcher knows.
    private static func start(
        _ box: SandboxDescription, _ descriptors: [Int32], leaving left: [Int32]
    ) throws -> ChildProcess {
        let file = Descriptor(owning: try check("memfd_create") { clinux_memory_file("box") })
        let bytes = box.bytes
        try check("pwrite") { pwrite(file.rawValue, bytes, bytes.count, 0) }
        return try ChildProcess(
            ProgramStart(
                path: Products.launcher, descriptors: descriptors + [file.rawValue] + left,
                inNamespaces: box.layers.contains(.namespaces)))
    }

    private static func waitForEnd(of child: borrowing ChildProcess) throws -> ChildExit {
        var watched = pollfd(fd: child.handle.rawValue, events: Int16(POLLIN), revents: 0)
        let count = poll(&watched, 1, patience)
        if count != 1 { try child.send(signal: SIGKILL) }
        let ended = child.wait()
        guard count == 1 else { throw HarnessError("a probe did not end") }
        return ended
    }

    private static func lines(_ descriptor: Int32) -> [String] {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            text += buffer.prefix(count)
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

/// Two descriptors, the first for this process, the second for the extension.
private final class RawPair {
    let first: Int32
    private(set) var second: Int32

    /// Takes both over.
    init(_ call: SystemCallError.StaticCall, _ make: (UnsafeMutablePointer<Int32>) -> Int32) throws {
        var raw: [Int32] = [-1, -1]
        try check(call) { make(&raw) }
        (first, second) = (raw[0], raw[1])
    }

    func closeSecond() {
        close(second)
        second = -1
    }

    deinit {
        close(first)
        if second >= 0 { close(second) }
    }
}
