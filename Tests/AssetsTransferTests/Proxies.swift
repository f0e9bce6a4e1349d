// Proxies of others: tinyproxy and microsocks, as whoever runs the tests.
import AssetsModel
import AssetsOS
import Glibc

/// A proxy on a free port of 127.0.0.1.
final class TestProxy {
    let port: UInt16
    private let process: TestProcess
    private let log: String

    /// tinyproxy, which lets CONNECT through to these ports.
    static func http(
        in directory: TestDirectory, allowing ports: [UInt16], user: String? = nil, password: String = ""
    ) throws -> TestProxy {
        let port = try freePort()
        let place = directory.path
        var lines = ["Port \(port)", "Listen 127.0.0.1", "LogFile \"\(place)/tinyproxy.log\"", "LogLevel Connect"]
        lines += ports.map { "ConnectPort \($0)" }
        if let user { lines.append("BasicAuth \(user) \(password)") }
        try DeviceTree(root: place).replace(
            "tinyproxy.conf", with: Array((lines.joined(separator: "\n") + "\n").utf8), mode: 0o600)
        return try TestProxy(
            "/usr/bin/tinyproxy", ["-d", "-c", place + "/tinyproxy.conf"], port: port, log: place + "/tinyproxy.log")
    }

    /// microsocks, for SOCKS 5.
    static func socks(in directory: TestDirectory, user: String, password: String) throws -> TestProxy {
        let port = try freePort()
        return try TestProxy(
            "/usr/bin/microsocks", ["-i", "127.0.0.1", "-p", "\(port)", "-u", user, "-P", password], port: port,
            log: directory.path + "/microsocks.log")
    }

    private init(_ program: String, _ arguments: [String], port: UInt16, log: String) throws {
        self.port = port
        self.log = log
        process = try TestProcess(program, arguments, log: log)
        try waitUntilItListens()
    }

    deinit { process.end(SIGTERM) }

    func server(_ scheme: ProxyServer.Scheme, user: String? = nil, password: String? = nil) throws -> ProxyServer {
        var server = ProxyServer("\(scheme.rawValue)://127.0.0.1:\(port)")
        server?.user = user
        server?.password = password
        guard let server else { throw SystemCallError(call: "inet_pton", number: EINVAL) }
        return server
    }

    var logged: String {
        get throws {
            let path = log.split(separator: "/")
            let folder = "/" + path.dropLast().joined(separator: "/")
            return String(
                decoding: try DeviceTree(root: folder).read(String(path.last ?? ""), limit: 1 << 20), as: UTF8.self)
        }
    }

    /// These programs open their port themselves: one that was free a moment ago.
    private static func freePort() throws -> UInt16 {
        let (listener, port) = try listenOnLoopback()
        close(listener)
        return port
    }

    private func waitUntilItListens() throws {
        let limit = MonotonicClock.now + .seconds(120)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        while MonotonicClock.now < limit {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(descriptor) }
            let isThere = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            if isThere { return }
            // Nothing tells when another program listens.
            poll(nil, 0, 5)
        }
        throw SystemCallError(call: "connect", number: ETIMEDOUT)
    }
}
