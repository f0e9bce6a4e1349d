// A server that sends the first part of a file, holds the connection and closes it when it is told to.
import AssetsOS
import DevelopmentServer
import FixturePlan
import Foundation
import Testing

/// One answer of such a server.
struct HeldRequest: Codable, Equatable {
    /// From where on bytes were asked for.
    var from: Int64
    var ifRange: String
    var sent: Int64
    /// Connections differ in it.
    var connection: Int
}

/// Python's server, over https: the first answer stops after so many bytes, until the test says how it goes on.
final class ClosingServer: Sendable {
    let port: Int
    let size: Int
    let held: Int
    private let program: Program

    /// What it answered, each once its answer has ended, and once there are so many.
    func requests(atLeast count: Int) async throws -> [HeldRequest] {
        try await program.output.all(atLeast: count, "answer") { Self.request($0) != nil }.compactMap(Self.request)
    }

    private static func request(_ line: String) -> HeldRequest? {
        try? JSONDecoder().decode(HeldRequest.self, from: Data(line.utf8))
    }

    static func start(on device: TestDevice, size: Int, holdingAfter held: Int) async throws -> ClosingServer {
        let folder = device.folder + "/closing"
        try Files.makeFolder(folder)
        let identity = try DevelopmentCertificateAuthority(folder: device.root + "/DevelopmentCA").issue(
            for: ["localhost", "127.0.0.1"])
        try Files.write(folder + "/server.pem", Data((identity.privateKey + identity.certificateChain).utf8))
        try Files.write(folder + "/server.py", Data(script.utf8))
        let program = try Program(
            "/usr/bin/env",
            ["python3", folder + "/server.py", folder + "/server.pem", "\(size)", "\(held)", "\(lastBytes)"],
            environment: ProcessEnvironment.current)
        let line = try await program.output.first("the server's port") { $0.hasPrefix("port ") }
        return ClosingServer(port: try #require(Int(line.dropFirst(5))), size: size, held: held, program)
    }

    private init(port: Int, size: Int, held: Int, _ program: Program) {
        self.port = port
        self.size = size
        self.held = held
        self.program = program
    }

    var item: FixtureItem { FixtureItem("held.pack", url: "https://localhost:\(port)/held.pack", size: size) }

    /// Sends the last of what comes before the connection is held.
    func sendHeld() { program.write("more") }
    /// Ends the connection that is held.
    func closeHeld() { program.write("close") }
    /// Sends so many bytes more on the connection that is held, and ends it.
    static let lastBytes = 50_000
    func closeHeldAfterMore() { program.write("last") }
    /// Sends the rest on the connection that is held.
    func goOn() { program.write("go") }

    func stop() async throws {
        program.closeInput()
        _ = try await program.end()
    }

    private static let script = #"""
        import http.server, json, ssl, sys, threading
        pem, size, held, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
        content = bytes((i * 31 + (i >> 8)) & 255 for i in range(size))
        word = None
        changed = threading.Condition()
        lock = threading.Lock()
        isFirst = True

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_): pass

            def do_GET(self):
                global isFirst, word
                start = int(self.headers.get("Range", "bytes=0-")[6:-1])
                self.send_response(206 if start else 200)
                self.send_header("ETag", '"v1"')
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("Content-Length", str(size - start))
                if start: self.send_header("Content-Range", "bytes %d-%d/%d" % (start, size - 1, size))
                self.end_headers()
                end = size
                if isFirst:
                    isFirst = False
                    self.wfile.write(content[start:held - 1000])
                    with changed: changed.wait_for(lambda: word == "more")
                    self.wfile.write(content[held - 1000:held])
                    with changed: changed.wait_for(lambda: word != "more")
                    if word == "close": end = held
                    if word == "last":
                        end = held + last
                        self.wfile.write(content[held:end])
                    start_rest = held
                else: start_rest = start
                if end == size: self.wfile.write(content[start_rest:])
                with lock:
                    print(json.dumps({"from": start, "ifRange": self.headers.get("If-Range", ""), "sent": end - start,
                                      "connection": self.client_address[1]}), flush=True)
                self.close_connection = True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            def finish_request(self, request, address):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(pem)
                with context.wrap_socket(request, server_side=True) as secure: super().finish_request(secure, address)
            def handle_error(self, *_): pass

        server = Server(("127.0.0.1", 0), Handler)
        print("port %d" % server.server_address[1], flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for line in sys.stdin:
            with changed:
                word = line.strip()
                changed.notify_all()
        """#
}
