// The https server of a test: a folder, a log, faults.
import DevelopmentServer
import FixturePlan
import Foundation
import Testing

/// A server with a certificate that the device's development authority issued.
final class TestServer: Sendable {
    let folder: String
    let log = EventLog<AccessRecord>("log of the server")
    private let server: StaticServer

    /// Names by which it can be asked; all lead to this machine.
    static let hosts = ["localhost", "127.0.0.1", "a.localhost", "deep.b.localhost"]

    var url: String { server.baseURL }

    /// A published file by another name of the server.
    func url(of name: String, at host: String) -> String {
        "\(url)/\(name)".replacingOccurrences(of: "://localhost", with: "://\(host)")
    }

    static func start(in folder: String, authority: String) async throws -> TestServer {
        try Files.makeFolder(folder)
        let identity = try DevelopmentCertificateAuthority(folder: authority).issue(for: hosts)
        return try await TestServer(folder: folder, identity: identity)
    }

    /// A server without a certificate, for what an app fetches by itself.
    static func plain(in folder: String) async throws -> TestServer {
        try await TestServer(folder: folder, identity: nil)
    }

    private init(folder: String, identity: TLSIdentity?) async throws {
        self.folder = folder
        let log = log
        server = try await StaticServer.start(folder: folder, tls: identity) { log.put($0) }
    }

    func stop() async {
        await server.stop()
        log.close()
    }

    /// Applies fault rules, as on the command line of `serve`.
    func fault(_ rules: String...) async throws { try await fault(rules: rules) }

    func fault(rules: [String]) async throws { await server.setFaults(try FaultPlan(parsing: rules)) }

    /// Publishes a file and returns its URL.
    @discardableResult
    func put(_ name: String, _ data: Data) throws -> String {
        try Files.write(folder + "/" + name, data)
        return "\(url)/\(name)"
    }

    /// Publishes random bytes as an item of a plan.
    func item(
        _ name: String, size: Int, essential: Bool = false, priority: Int = 0
    ) throws -> FixtureItem {
        let seed = name.utf8.reduce(UInt64(size)) { $0 &* 31 &+ UInt64($1) }
        let url = try put(name, randomBytes(size, seed: seed))
        return FixtureItem(name, url: url, size: size, essential: essential, priority: priority)
    }

    /// Answers for a file that have ended so far, in order.
    func requests(of name: String) -> [AccessRecord] { log.all.filter { Self.isAnswer($0, for: name) } }

    /// The same, once there are so many: a client has all bytes a moment before the server's answer has ended.
    func requests(of name: String, atLeast count: Int) async throws -> [AccessRecord] {
        try await log.all(atLeast: count, "request of \(name)") { Self.isAnswer($0, for: name) }
    }

    /// Bytes of bodies sent for a file, once they are so many.
    func bytesSent(of name: String, atLeast bytes: Int64) async throws -> Int64 {
        while true {
            let answers = requests(of: name)
            if answers.bytesSent >= bytes { return answers.bytesSent }
            _ = try await requests(of: name, atLeast: answers.count + 1)
        }
    }

    private static func isAnswer(_ record: AccessRecord, for name: String) -> Bool {
        record.path == name || record.path == "/" + name
    }
}

extension [AccessRecord] {
    /// Bytes of all their bodies.
    var bytesSent: Int64 { reduce(0) { $0 + $1.bytesSent } }
}
