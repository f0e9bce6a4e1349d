// A folder, a server and clients that are not ours: curl, openssl, and bytes on a socket.
import AssetsOS
import Foundation
import Glibc
import Testing

@testable import DevelopmentServer

/// Records of a server's log, in order; waits for them with a limit.
final class LogBook: Sendable {
    private let records = Guarded<[AccessRecord]>([])

    func add(_ record: AccessRecord) { records.withLock { $0.append(record) } }

    /// The first `count` records, once they are there.
    func first(_ count: Int) async throws -> [AccessRecord] {
        let clock = ContinuousClock()
        let limit = clock.now + .seconds(120)
        while true {
            let all = records.withLock { $0 }
            if all.count >= count { return Array(all.prefix(count)) }
            try #require(clock.now < limit, "only \(all.count) of \(count) log records came")
            await Task.yield()
        }
    }
}

struct Place {
    let folder: String
    var site: String { folder + "/site" }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/" + name))
    }

    /// Runs `body` against a server for `site`.
    func withServer(
        tls: TLSIdentity? = nil, faults: [String] = [], idleMax: Duration = .seconds(30),
        _ body: (StaticServer, LogBook) async throws -> Void
    ) async throws {
        let log = LogBook()
        let server = try await StaticServer.start(
            folder: site, tls: tls, faults: FaultPlan(parsing: faults), idleMax: idleMax,
            log: { log.add($0) })
        do { try await body(server, log) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }
}

func inPlace(_ body: (Place) async throws -> Void) async throws {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/server.XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createDirectory(atPath: folder + "/site", withIntermediateDirectories: true)
    try await body(Place(folder: folder))
}

/// What a program left behind.
struct Outcome {
    var status: Int32
    var output: [UInt8]
    var error: String
    var text: String { String(decoding: output, as: UTF8.self) }
}

/// Runs a program to its end on a thread of its own.
func run(_ program: String, _ arguments: [String]) async throws -> Outcome {
    try await withCheckedThrowingContinuation { continuation in
        Thread {
            continuation.resume(with: Result { try runNow(program, arguments) })
        }.start()
    }
}

private func runNow(_ program: String, _ arguments: [String]) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/\(program)")
    process.arguments = arguments
    let output = Pipe()
    let error = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = error
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    let words = error.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Outcome(
        status: process.terminationStatus, output: Array(bytes), error: String(decoding: words, as: UTF8.self))
}

/// Runs curl, with a limit on its time, quiet but for errors.
func curl(_ arguments: String...) async throws -> Outcome {
    try await run("curl", ["--silent", "--show-error", "--max-time", "60", "--noproxy", "*"] + arguments)
}

/// Sends bytes on a fresh connection and reads until the server closes.
func exchange(_ port: UInt16, _ bytes: [UInt8]) async throws -> String {
    String(decoding: try await exchangeBytes(port, bytes), as: UTF8.self)
}

/// The same, as bytes.
func exchangeBytes(_ port: UInt16, _ bytes: [UInt8]) async throws -> [UInt8] {
    try await withCheckedThrowingContinuation { continuation in
        Thread {
            continuation.resume(with: Result { try exchangeNow(port, bytes) })
        }.start()
    }
}

private func exchangeNow(_ port: UInt16, _ bytes: [UInt8]) throws -> [UInt8] {
    let connection = try connected(port)
    let fd = connection.rawValue
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    try check("setsockopt") {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout.size(ofValue: limit)))
    }
    try check("send") { send(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
        let count = try check("recv") { recv(fd, &buffer, buffer.count, 0) }
        if count == 0 { return received }
        received += buffer[..<count]
    }
}

func connected(_ port: UInt16) throws -> Descriptor {
    let connection = Descriptor(owning: try check("socket") { socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) })
    let fd = connection.rawValue
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    try check("connect") {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
    return connection
}

/// Holds a connection open.
final class ConnectionBox {
    let connection: Descriptor
    init(_ connection: consuming Descriptor) { self.connection = connection }
}

/// Bytes that tell every offset from the others.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ ($0 >> 8) &* 17 ^ ($0 >> 16)) }
}
