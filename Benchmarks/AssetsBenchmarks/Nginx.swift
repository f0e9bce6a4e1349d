// Debian's nginx as an ordinary user: the server that we and our peers fetch from.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc
internal import RootHelperClient

/// A running nginx with TLS from a development authority, or without.
struct Nginx {
    private static let startLimit = Duration.seconds(10)
    /// Another process may take the free port first.
    private static let triesMax = 5

    private let program: Program
    let port: UInt16
    /// What it answered, where it logs that.
    let requests: String
    /// Where its files lie.
    let site: String
    /// "https://localhost:8443", without a slash at the end.
    let baseURL: String

    /// Serves `<folder>/site`; its own files lie beside.
    ///
    /// - Parameters:
    ///   - authority: who vouches for it; nil for plain http.
    ///   - rate: bytes a second of each connection; nil for as quick as it goes.
    ///   - site: what it serves; nil for a folder of its own.
    ///   - directives: what else its server is told, in its own words; it logs what it answers then.
    ///   - network: whose device finds it at its own address 127.0.0.1; nil for this machine's own.
    init(
        folder: String, authority: DevelopmentCertificateAuthority?, rate: Int? = nil, site: String? = nil,
        directives: String = "", in network: HelperNetwork? = nil
    ) throws {
        requests = folder + "/requests.log"
        let site = site ?? folder + "/site"
        self.site = site
        for path in [folder, site] { try Folder.make(path) }
        if let identity = try authority?.issue(for: ["localhost", "127.0.0.1"]) {
            try Folder.write(identity.certificateChain, to: folder + "/server.pem")
            try Folder.write(identity.privateKey, to: folder + "/server.key", mode: 0o600)
        }
        for _ in 1..<Self.triesMax {
            let setup = Setup(
                folder: folder, port: try SilentPort.free(), rate: rate ?? 0, site: site, directives: directives,
                isSecure: authority != nil, network: network)
            if let started = try Self.start(setup) {
                (program, port) = started
                baseURL = "\(authority == nil ? "http" : "https")://localhost:\(port)"
                return
            }
        }
        throw BenchError("nginx does not start: \((try? Folder.text(folder + "/nginx.log")) ?? "")")
    }

    /// What its configuration says.
    private struct Setup {
        var folder: String
        var port: UInt16
        var rate: Int
        var site: String
        var directives: String
        var isSecure: Bool
        var network: HelperNetwork?
    }

    private static func start(_ setup: Setup) throws -> (Program, UInt16)? {
        let (folder, port) = (setup.folder, setup.port)
        try Folder.write(configuration(setup), to: folder + "/nginx.conf")
        let log = folder + "/nginx.log"
        let arguments = ["-p", folder, "-c", folder + "/nginx.conf", "-e", log]
        let pid = folder + "/nginx.pid"
        unlink(pid)
        let program = try Program(Program.find("nginx"), arguments, log: log, in: setup.network)
        let deadline = Deadline(in: startLimit)
        while program.isRunning, !deadline.hasPassed {
            // Written once it listens.
            if access(pid, F_OK) == 0 { return (program, port) }
            usleep(2_000)
        }
        return nil
    }

    private static func configuration(_ setup: Setup) -> String {
        let folder = setup.folder
        // Debian's own places for temporary files are not ours to write.
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/temporary;" }.joined(separator: " ")
        let certificate = setup.isSecure ? "ssl_certificate server.pem; ssl_certificate_key server.key;" : ""
        return """
            daemon off;
            worker_processes 1;
            pid \(folder)/nginx.pid;
            events {}
            http {
                log_format answers escape=none '\(RequestLog.format)';
                access_log \(setup.directives.isEmpty ? "off" : "\(folder)/requests.log answers");
                sendfile on;
                limit_rate \(setup.rate);
                \(temporary)
                server {
                    listen 127.0.0.1:\(setup.port)\(setup.isSecure ? " ssl" : "");
                    \(certificate)
                    root \(setup.site);
                    \(setup.directives)
                }
            }

            """
    }

    func stop() { _ = program.end(SIGTERM) }

    /// Takes connections and answers nothing, until `goOn`.
    func pause() { program.send(SIGSTOP) }
    func goOn() { program.send(SIGCONT) }

    /// What it has used of the processors.
    func processorTime() throws -> Duration { try Machine.processorTime(ofGroup: program.process) }
}
