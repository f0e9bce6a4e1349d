// A web server at the other end of a cable: nginx, with a certificate for its address.
import AssetsOS
import FixturePlan
import Foundation
import Glibc
import RootHelperClient
import Testing

/// nginx on the world's side of a network. Files below `slow` come at `slowRate`.
final class FarServer: Sendable {
    struct Request: Equatable {
        var path: String
        var status: Int
        var bytes: Int
        /// "bytes=100-", or "-".
        var range: String
        /// Counts the connections.
        var connection: Int
        /// Whose address it came from.
        var client: String
    }

    static let slowRate = 100 << 10

    let port: UInt16
    private let folder: String
    private let program: Program

    var url: String { "https://\(NetworkSide.world.address):\(port)" }

    /// The device trusts its certificate in Developer Mode.
    static func start(on network: HelperNetwork, for device: TestDevice) async throws -> FarServer {
        let folder = device.folder + "/far"
        try Files.makeFolder(folder + "/www/slow")
        let made = try await Program.run(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=far", "-addext", "subjectAltName=IP:\(NetworkSide.world.address)",
                "-keyout", folder + "/key.pem", "-out", folder + "/certificate.pem",
            ])
        try #require(made.exit == .exited(0), "\(made.errors)")
        try Files.makeFolder(device.root + "/DevelopmentCA")
        try Files.write(device.root + "/DevelopmentCA/ca.pem", #require(Files.read(folder + "/certificate.pem")))
        let (socket, port) = try network.listen(on: .world)
        try Files.write(folder + "/nginx.conf", Data(configuration(folder, port).utf8))
        return try FarServer(folder: folder, port: port, socket)
    }

    /// It runs on the tests' side; its socket does not.
    private init(folder: String, port: UInt16, _ socket: SharedDescriptor) throws {
        self.folder = folder
        self.port = port
        program = try Program(
            "/usr/sbin/nginx", ["-p", folder, "-c", folder + "/nginx.conf", "-e", folder + "/error.log"],
            environment: ["NGINX": "3;", "PATH": "/usr/sbin:/usr/bin"], inherited: [socket.rawValue])
    }

    /// The file is old: nginx tags what another file could replace within the same second with the same tag, and who
    /// knows that does not go on with it.
    @discardableResult
    func put(_ name: String, _ data: Data) throws -> String {
        let path = folder + "/www/" + name
        try Files.write(path, data)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: path)
        return "\(url)/\(name)"
    }

    func item(_ name: String, size: Int, essential: Bool = false) throws -> FixtureItem {
        let identifier = String(name.split(separator: "/").last ?? "")
        return FixtureItem(
            identifier, url: try put(name, randomBytes(size, seed: UInt64(size))), size: size, essential: essential)
    }

    func content(_ name: String) -> Data? { Files.read(folder + "/www/" + name) }

    /// What it has answered so far, each once its end was sent, in the order of the requests.
    var requests: [Request] {
        let text = Files.read(folder + "/access.log").map { String(decoding: $0, as: UTF8.self) } ?? ""
        return NginxLog.lines(text).compactMap { parts in
            guard parts.count == 6, let status = Int(parts[1]), let bytes = Int(parts[2]),
                let connection = Int(parts[4])
            else { return nil }
            return Request(
                path: parts[0], status: status, bytes: bytes, range: parts[3], connection: connection,
                client: parts[5])
        }
    }

    /// Its answers for a file, once there are so many: a client has all bytes a moment before nginx says so.
    func requests(of name: String, atLeast count: Int, on device: TestDevice) async throws -> [Request] {
        try await device.until("nginx answered \(name) \(count) times") {
            requests.count { $0.path.hasSuffix(name) } >= count
        }
        return requests.filter { $0.path.hasSuffix(name) }
    }

    func stop() async throws {
        try program.send(signal: SIGTERM)
        _ = try await program.end()
    }

    private static func configuration(_ place: String, _ port: UInt16) -> String {
        """
        daemon off; worker_processes 1; pid \(place)/nginx.pid; error_log \(place)/error.log info;
        events { worker_connections 256; }
        http {
          log_format line escape=none '\(NginxLog.prefix)$uri|$status|$body_bytes_sent|$http_range|$connection|$remote_addr';
          access_log \(place)/access.log line;
          client_body_temp_path \(place)/t1; proxy_temp_path \(place)/t2; fastcgi_temp_path \(place)/t3;
          uwsgi_temp_path \(place)/t4; scgi_temp_path \(place)/t5;
          server {
            listen \(NetworkSide.world.address):\(port) ssl; root \(place)/www;
            ssl_certificate \(place)/certificate.pem; ssl_certificate_key \(place)/key.pem;
            location /slow/ { limit_rate \(slowRate); }
          }
        }
        """
    }
}
