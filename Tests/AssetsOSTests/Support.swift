// What the tests of this target share: a folder of their own, a loop of their own, events to wait for.
import Glibc
import Testing

@testable import AssetsOS

/// Calls `body` with a new folder, which is removed afterwards.
func withTemporaryFolder(_ body: (String) async throws -> Void) async throws {
    var template = Array(((getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/os-XXXXXX").utf8CString)
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

/// Calls `body` with a running loop, which is stopped afterwards.
func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
    let loop = try EventLoop.start(name: "test-loop")
    defer { loop.stop() }
    try await body(loop)
}

extension EventLoop {
    /// Runs `body` on the loop and returns what it returned.
    func perform<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            _ = schedule(at: .zero) { continuation.resume(with: Result(catching: body)) }
        }
    }
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

/// A number that is a bit pattern of flags or a mode.
func mode(of path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
}

/// A generator with a seed, so that a failure can be had again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Whether there is one; it is closed.
func isThere(_ descriptor: consuming Descriptor?) -> Bool {
    switch consume descriptor {
    case .some: true
    case nil: false
    }
}
