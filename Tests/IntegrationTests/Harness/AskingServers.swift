// Servers that ask who asks, none of them ours: nginx for Basic, Python's for Digest.
import AssetsOS
import CLinux
import DevelopmentServer
import FixturePlan
import Foundation
import Glibc
import Testing

/// One answer of such a server.
struct AskedRequest: Codable, Equatable {
    var path: String
    var status: Int
    /// Whom the server took the request for; empty without a valid credential.
    var user: String
    /// The request carried an Authorization field.
    var isSigned: Bool
}

/// A port of 127.0.0.1 that takes connections before its server runs.
func listener() throws -> (descriptor: Int32, port: Int) {
    let descriptor = try check("socket") { socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) { pointer in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
            _ = try check("bind") { bind(descriptor, generic, length) }
            _ = try check("getsockname") { getsockname(descriptor, generic, &length) }
        }
    }
    _ = try check("listen") { listen(descriptor, 64) }
    return (descriptor, Int(address.sin_port.bigEndian))
}

/// nginx with auth_basic and a password file.
final class BasicServer: Sendable {
    static let realm = "nginx room"
    let port: Int
    private let folder: String
    private let program: Program

    var url: String { "https://localhost:\(port)" }

    static func start(
        on device: TestDevice, user: String = FixtureAnswer.user, password: String = FixtureAnswer.password
    ) async throws -> BasicServer {
        let folder = device.folder + "/nginx"
        try Files.makeFolder(folder + "/www")
        let identity = try DevelopmentCertificateAuthority(folder: device.root + "/DevelopmentCA").issue(
            for: ["localhost", "127.0.0.1"])
        try Files.write(folder + "/certificate.pem", Data(identity.certificateChain.utf8))
        try Files.write(folder + "/key.pem", Data(identity.privateKey.utf8))
        let hash = try await Program.run("/usr/bin/openssl", ["passwd", "-apr1", password])
        let line = user + ":" + (try #require(hash.output.first)) + "\n"
        try Files.write(folder + "/passwords", Data(line.utf8))
        let (descriptor, port) = try listener()
        defer { close(descriptor) }
        try Files.write(folder + "/nginx.conf", Data(configuration(folder, port).utf8))
        return try BasicServer(folder: folder, port: port, descriptor)
    }

    private init(folder: String, port: Int, _ descriptor: Int32) throws {
        self.folder = folder
        self.port = port
        program = try Program(
            "/usr/sbin/nginx", ["-p", folder, "-c", folder + "/nginx.conf", "-e", folder + "/error.log"],
            environment: ["NGINX": "3;", "PATH": "/usr/sbin:/usr/bin"], inherited: [descriptor])
    }

    func item(_ name: String, size: Int, essential: Bool = false) throws -> FixtureItem {
        try Files.write(folder + "/www/" + name, randomBytes(size, seed: UInt64(size)))
        return FixtureItem(name, url: "\(url)/\(name)", size: size, essential: essential)
    }

    func put(_ name: String, _ data: Data) throws -> String {
        try Files.write(folder + "/www/" + name, data)
        return "\(url)/\(name)"
    }

    /// Ends it once all requests have ended; what it answered.
    func finish() async throws -> [AskedRequest] {
        try program.send(signal: SIGQUIT)
        _ = try await program.end()
        let text = Files.read(folder + "/access.log").map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 4, let status = Int(parts[1]) else { return nil }
            return AskedRequest(path: parts[0], status: status, user: parts[2], isSigned: parts[3] == "1")
        }
    }

    private static func configuration(_ place: String, _ port: Int) -> String {
        """
        daemon off; worker_processes 1; pid \(place)/nginx.pid; error_log \(place)/error.log info;
        \(geteuid() == 0 ? "user root;" : "")
        events { worker_connections 256; }
        http {
          map $http_authorization $signed { default 1; "" 0; }
          map $status $taken { default $remote_user; 401 ""; }
          log_format line escape=none '$uri|$status|$taken|$signed';
          access_log \(place)/access.log line;
          client_body_temp_path \(place)/t1; proxy_temp_path \(place)/t2; fastcgi_temp_path \(place)/t3;
          uwsgi_temp_path \(place)/t4; scgi_temp_path \(place)/t5;
          server {
            listen 127.0.0.1:\(port) ssl; server_name localhost; root \(place)/www;
            ssl_certificate \(place)/certificate.pem; ssl_certificate_key \(place)/key.pem;
            auth_basic "\(realm)"; auth_basic_user_file \(place)/passwords;
          }
        }
        """
    }
}

/// Digest in all its forms, written in Python after RFC 7616 and with nothing of ours.
final class DigestServer: Sendable {
    let port: Int
    private let program: Program

    var url: String { "https://localhost:\(port)" }
    /// What it answered so far.
    var requests: [AskedRequest] { program.output.all.compactMap(Self.request) }

    /// Waits for an answer.
    func answered(_ matches: @escaping @Sendable (AskedRequest) -> Bool) async throws {
        _ = try await program.output.first("answer") { Self.request($0).map(matches) ?? false }
    }

    private static func request(_ line: String) -> AskedRequest? {
        try? JSONDecoder().decode(AskedRequest.self, from: Data(line.utf8))
    }

    static func start(on device: TestDevice, elsewhere: String = "") async throws -> DigestServer {
        let folder = device.folder + "/digest"
        try Files.makeFolder(folder)
        let identity = try DevelopmentCertificateAuthority(folder: device.root + "/DevelopmentCA").issue(
            for: ["localhost", "127.0.0.1"])
        try Files.write(folder + "/server.pem", Data((identity.privateKey + identity.certificateChain).utf8))
        try Files.write(folder + "/server.py", Data(script.utf8))
        let (descriptor, port) = try listener()
        defer { close(descriptor) }
        return try DigestServer(folder: folder, port: port, descriptor, elsewhere)
    }

    private init(folder: String, port: Int, _ descriptor: Int32, _ elsewhere: String) throws {
        self.port = port
        program = try Program(
            "/usr/bin/env",
            ["python3", folder + "/server.py", folder + "/server.pem", FixtureAnswer.user, elsewhere],
            environment: ProcessEnvironment.current.merging(["PASSWORD": FixtureAnswer.password]) { $1 },
            inherited: [descriptor])
    }

    /// `path` says what the server asks for: its first part is the form.
    func item(_ path: String, size: Int, essential: Bool = false) -> FixtureItem {
        FixtureItem(
            path.replacingOccurrences(of: "/", with: " "), url: "\(url)/\(path)?size=\(size)", size: size,
            essential: essential)
    }

    func stop() async throws {
        try program.send(signal: SIGTERM)
        _ = try await program.end()
    }

    private static let script = #"""
        import hashlib, http.server, json, os, re, socket, ssl, sys, threading, urllib.parse, urllib.request
        pem, user, elsewhere = sys.argv[1:4]
        password = os.environ["PASSWORD"]
        lock = threading.Lock()
        nonces = {}
        FORMS = {
            "md5": ("MD5", True), "sha256": ("SHA-256", True), "md5-sess": ("MD5-sess", True),
            "sha256-sess": ("SHA-256-sess", True), "old": ("MD5", False), "stale": ("SHA-256", True),
            "both": ("MD5", True),
        }

        def hashed(algorithm, text):
            return hashlib.new("md5" if algorithm.startswith("MD5") else "sha256", text.encode()).hexdigest()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_): pass

            def answer(self, status, fields=(), body=b"", who=""):
                signed = "Authorization" in self.headers
                with lock:
                    print(json.dumps({"path": self.path.split("?")[0], "status": status, "user": who,
                                      "isSigned": signed}), flush=True)
                self.send_response(status)
                for name, value in fields: self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def accepted(self, form, realm):
                text = self.headers.get("Authorization", "")
                if form == "both" and text.startswith("Basic "):
                    import base64
                    return base64.b64decode(text[6:]).decode() == user + ":" + password, False
                if not text.startswith("Digest "): return False, False
                values = urllib.request.parse_keqv_list(urllib.request.parse_http_list(text[7:]))
                algorithm, modern = FORMS[form]
                nonce = values.get("nonce", "")
                with lock: uses = nonces.get(nonce)
                if uses is None or values.get("realm") != realm or values.get("uri") != self.path: return False, False
                if values.get("algorithm", "MD5") != algorithm or values.get("opaque") != "op aque": return False, False
                first = hashed(algorithm, ":".join((user, realm, password)))
                if algorithm.endswith("-sess"): first = hashed(algorithm, ":".join((first, nonce, values["cnonce"])))
                second = hashed(algorithm, self.command + ":" + self.path)
                if modern:
                    if values.get("qop") != "auth" or not re.fullmatch("[0-9a-f]{8}", values.get("nc", "")): return False, False
                    middle = ":".join((nonce, values["nc"], values["cnonce"], "auth"))
                    count = int(values["nc"], 16)
                    if count <= uses: return False, False
                    with lock: nonces[nonce] = count
                else:
                    middle = nonce
                right = values.get("username") == user and values.get("response") == hashed(algorithm, ":".join((first, middle, second)))
                if right and form == "stale" and not nonce.startswith("second"): return False, True
                return right, False

            def do_GET(self):
                form = self.path.split("/")[1]
                size = int(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("size", ["0"])[0])
                if form == "open": return self.answer(200, body=b"x" * size)
                if form == "away": target = elsewhere
                if form not in FORMS and form != "away": return self.answer(404)
                realm = "digest " + form
                known = form if form in FORMS else "md5"
                right, stale = self.accepted(known, realm)
                if right and form == "away": return self.answer(302, [("Location", target)], who=user)
                if right: return self.answer(200, [("ETag", '"v"')], b"x" * size, user)
                nonce = ("second" if stale else "") + os.urandom(12).hex()
                with lock: nonces[nonce] = 0
                algorithm, modern = FORMS[known]
                fields = [("WWW-Authenticate", 'Digest realm="%s", nonce="%s", opaque="op aque", algorithm=%s%s%s' % (
                    realm, nonce, algorithm, ', qop="auth-int, auth"' if modern else "", ", stale=true" if stale else ""))]
                if form == "both": fields.append(("WWW-Authenticate", 'Basic realm="basic both"'))
                self.answer(401, fields, b"who are you?")

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            def __init__(self):
                super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
                self.socket.close()
                self.socket = socket.socket(fileno=3)
                self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self.context.load_cert_chain(pem)
            def finish_request(self, request, address):
                with self.context.wrap_socket(request, server_side=True) as secure: super().finish_request(secure, address)
            def handle_error(self, *_): pass

        Server().serve_forever()
        """#
}
