// Debian's nginx as an ordinary user: the server that we and our peers fetch from.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// A running nginx with TLS from a development authority.
struct Nginx {
    private static let startLimit = Duration.seconds(10)
    /// Another process may take the free port first.
    private static let triesMax = 5

    private let program: Program
    let port: UInt16
    /// Where its files lie.
    let site: String
    /// "https://localhost:8443", without a slash at the end.
    var baseURL: String { "https://localhost:\(port)" }

    /// Serves `<folder>/site`; its own files lie beside.
    ///
    /// - Parameter rate: bytes a second of each connection; nil for as quick as it goes.
    init(folder: String, authority: DevelopmentCertificateAuthority, rate: Int? = nil) throws {
        site = folder + "/site"
        try Folder.make(site)
        let identity = try authority.issue(for: ["localhost", "127.0.0.1"])
        try Folder.write(identity.certificateChain, to: folder + "/server.pem")
        try Folder.write(identity.privateKey, to: folder + "/server.key", mode: 0o600)
        for _ in 1..<Self.triesMax {
            if let started = try Self.start(folder, rate) {
                (program, port) = started
                return
            }
        }
        throw BenchError("nginx does not start: \((try? Folder.text(folder + "/nginx.log")) ?? "")")
    }

    private static func start(_ folder: String, _ rate: Int?) throws -> (Program, UInt16)? {
        let port = try SilentPort.free()
        try Folder.write(configuration(folder, port, rate), to: folder + "/nginx.conf")
        let log = folder + "/nginx.log"
        let arguments = ["-p", folder, "-c", folder + "/nginx.conf", "-e", log]
        let program = try Program(Program.find("nginx"), arguments, log: log)
        let deadline = Deadline(in: startLimit)
        while program.isRunning, !deadline.hasPassed {
            if SilentPort.answers(port) { return (program, port) }
            usleep(2_000)
        }
        return nil
    }

    private static func configuration(_ folder: String, _ port: UInt16, _ rate: Int?) -> String {
        // Debian's own places for temporary files are not ours to write.
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/temporary;" }.joined(separator: " ")
        return """
            daemon off;
            worker_processes 1;
            pid \(folder)/nginx.pid;
            events {}
            http {
                access_log off;
                sendfile on;
                limit_rate \(rate ?? 0);
                \(temporary)
                server {
                    listen 127.0.0.1:\(port) ssl;
                    ssl_certificate server.pem;
                    ssl_certificate_key server.key;
                    root \(folder)/site;
                }
            }

            """
    }

    func stop() { _ = program.end(SIGTERM) }
}
