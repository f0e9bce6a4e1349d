// nginx as a plain web server of files.
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

/// One answer.
struct ServedRequest: Equatable {
    var path: String
    var status: Int
    /// Bytes of the body that left the server.
    var bytes: Int
    /// As it stood in the request; empty without one.
    var range: String
}

/// A web server that sends slowly enough to be interrupted.
final class FileNginx: Sendable {
    private let port: Int
    private let folder: String
    private let program: Program

    var url: String { "https://localhost:\(port)" }

    /// `rules` are directives of its one server.
    static func start(on device: TestDevice, rules: String = "") async throws -> FileNginx {
        let folder = device.folder + "/nginx"
        try Files.makeFolder(folder + "/www")
        let identity = try DevelopmentCertificateAuthority(folder: device.root + "/DevelopmentCA").issue(
            for: ["localhost", "127.0.0.1"])
        try Files.write(folder + "/certificate.pem", Data(identity.certificateChain.utf8))
        try Files.write(folder + "/key.pem", Data(identity.privateKey.utf8))
        let (descriptor, port) = try listener()
        defer { close(descriptor) }
        try Files.write(folder + "/nginx.conf", Data(configuration(folder, port, rules).utf8))
        return try FileNginx(folder: folder, port: port, descriptor)
    }

    private init(folder: String, port: Int, _ descriptor: Int32) throws {
        self.folder = folder
        self.port = port
        program = try Program(
            "/usr/sbin/nginx", ["-p", folder, "-c", folder + "/nginx.conf", "-e", folder + "/error.log"],
            environment: ["NGINX": "3;", "PATH": "/usr/sbin:/usr/bin"], inherited: [descriptor])
    }

    /// Publishes a file as old as published files are: the tag of one that was written this very second names no version.
    @discardableResult
    func put(_ name: String, _ data: Data) throws -> String {
        let path = folder + "/www/" + name
        try Files.write(path, data)
        let time = timespec(tv_sec: Glibc.time(nil) - 60, tv_nsec: 0)
        try #require(utimensat(AT_FDCWD, path, [time, time], 0) == 0)
        return "\(url)/\(name)"
    }

    func item(_ name: String, size: Int) throws -> FixtureItem {
        FixtureItem(name, url: try put(name, randomBytes(size, seed: UInt64(size))), size: size)
    }

    /// Ends it once all requests have ended; what it answered for a file, in the order of the requests.
    func finish(_ name: String) async throws -> [ServedRequest] {
        try program.send(signal: SIGQUIT)
        _ = try await program.end()
        let text = Files.read(folder + "/access.log").map { String(decoding: $0, as: UTF8.self) } ?? ""
        return NginxLog.lines(text).compactMap { parts in
            guard parts.count == 4, parts[0] == "/" + name, let status = Int(parts[1]), let bytes = Int(parts[2]) else {
                return nil
            }
            return ServedRequest(path: parts[0], status: status, bytes: bytes, range: parts[3])
        }
    }

    private static func configuration(_ place: String, _ port: Int, _ rules: String) -> String {
        """
        daemon off; worker_processes 1; pid \(place)/nginx.pid; error_log \(place)/error.log info;
        \(geteuid() == 0 ? "user root;" : "")
        events { worker_connections 256; }
        http {
          log_format line escape=none '\(NginxLog.prefix)$uri|$status|$body_bytes_sent|$http_range';
          access_log \(place)/access.log line;
          client_body_temp_path \(place)/t1; proxy_temp_path \(place)/t2; fastcgi_temp_path \(place)/t3;
          uwsgi_temp_path \(place)/t4; scgi_temp_path \(place)/t5;
          server {
            listen 127.0.0.1:\(port) ssl; server_name localhost; root \(place)/www;
            ssl_certificate \(place)/certificate.pem; ssl_certificate_key \(place)/key.pem;
            \(rules)
          }
        }
        """
    }
}
