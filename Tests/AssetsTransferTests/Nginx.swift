// A real web server with a certificate of its own.
import AssetsOS
import Glibc

/// nginx on a free port of 127.0.0.1, as whoever runs the tests.
final class Nginx {
    struct Line: Equatable {
        var path: String
        var status: Int
        var bodyBytes: Int64
        var range: String
        var ifRange: String
        var connection: String
        /// As nginx calls it: "HTTP/1.1".
        var httpVersion: String
    }

    let port: UInt16
    let authority: String
    private let directory: String
    private let tree: DeviceTree
    private let process: TestProcess

    /// - Parameter http2: Whether it offers HTTP/2.
    init(in directory: TestDirectory, http2: Bool = false) throws {
        let place = directory.path + "/nginx"
        try DeviceTree(root: directory.path).makeDirectory("nginx/www")
        tree = try DeviceTree(root: place)
        self.directory = place
        authority = place + "/certificate.pem"
        let made = try TestProcess(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout", place + "/key.pem", "-out", authority,
            ], log: place + "/openssl.log")
        guard made.wait() == 0 else { throw SystemCallError(call: "execve", number: EINVAL) }
        // The socket listens before nginx runs: nobody has to wait for it.
        let (listener, port) = try listenOnLoopback()
        defer { close(listener) }
        self.port = port
        try tree.replace("nginx.conf", with: Array(Self.configuration(place, port, http2).utf8), mode: 0o600)
        process = try TestProcess(
            "/usr/sbin/nginx", ["-p", place, "-c", place + "/nginx.conf", "-e", place + "/error.log"],
            environment: ["NGINX=3;"], descriptor: listener, log: place + "/output.log")
    }

    deinit { process.end(SIGTERM) }

    func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    /// Publishes a file; one of the same name is replaced by another version. It is as old as published files are: the tag
    /// of one that was written this very second names no version.
    func publish(_ name: String, _ bytes: [UInt8], secondsAgo: Int = 60) throws {
        try tree.replace("www/" + name, with: bytes, mode: 0o600)
        let time = timespec(tv_sec: Glibc.time(nil) - secondsAgo, tv_nsec: 0)
        guard utimensat(AT_FDCWD, directory + "/www/" + name, [time, time], 0) == 0 else {
            throw SystemCallError(call: "utimensat", number: errno)
        }
    }

    /// Lets all requests end, stops, and returns the access log, in the order in which the requests began: nginx writes a
    /// line as its request ends, and one whose client has gone it may notice long after others.
    func finish() throws -> [Line] {
        process.end(SIGQUIT)
        let text = String(decoding: try tree.read("access.log", limit: 1 << 20), as: UTF8.self)
        let lines = text.split(separator: "\n").compactMap { line -> (began: Int, line: Line)? in
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 9, let ended = Double(parts[6]), let time = Double(parts[7]),
                let status = Int(parts[1]), let bytes = Int64(parts[2])
            else { return nil }
            let read = Line(
                path: parts[0], status: status, bodyBytes: bytes, range: parts[3], ifRange: parts[4],
                connection: parts[5], httpVersion: parts[8])
            return (Int(((ended - time) * 1000).rounded()), read)
        }
        return lines.sorted { $0.began < $1.began }.map(\.line)
    }

    private static func configuration(_ place: String, _ port: UInt16, _ http2: Bool) -> String {
        """
        daemon off; worker_processes 1; pid \(place)/nginx.pid; error_log \(place)/error.log info;
        \(geteuid() == 0 ? "user root;" : "")
        events { worker_connections 256; }
        http {
          log_format line escape=none '$uri|$status|$body_bytes_sent|$http_range|$http_if_range|$connection|'
                  '$msec|$request_time|$server_protocol';
          access_log \(place)/access.log line;
          client_body_temp_path \(place)/t1; proxy_temp_path \(place)/t2; fastcgi_temp_path \(place)/t3;
          uwsgi_temp_path \(place)/t4; scgi_temp_path \(place)/t5;
          server {
            listen 127.0.0.1:\(port) ssl\(http2 ? " http2" : ""); server_name localhost; root \(place)/www;
            ssl_certificate \(place)/certificate.pem; ssl_certificate_key \(place)/key.pem;
            location /slow/ { alias \(place)/www/; limit_rate_after 256k; limit_rate 32k; }
            location /noranges/ { alias \(place)/www/; max_ranges 0; }
            location /unnamed/ { alias \(place)/www/; etag off; add_header Last-Modified ""; }
            location = /loop { return 302 /loop; }
            location = /away { return 302 https://forbidden.example/file; }
            location = /moved { return 301 /moved-again; }
            location = /moved-again { return 307 https://localhost:\(port)/file; }
            location = /plain { return 302 http://a.example/file; }
            location = /busy { add_header Retry-After 7 always; return 503; }
          }
        }
        """
    }
}
