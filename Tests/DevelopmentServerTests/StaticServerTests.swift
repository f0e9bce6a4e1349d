import AssetsOS
import Foundation
import Glibc
import Testing

@testable import DevelopmentServer

@Suite("Serving a folder")
struct StaticServerTests {
    private static let size = 3_000_000

    @Test("curl gets a file whole, over http and https", arguments: [false, true])
    func whole(isSecure: Bool) async throws {
        try await inPlace { place in
            try place.write(pattern(Self.size), to: "site/a b.mp4")
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            let tls = isSecure ? try authority.issue(for: ["localhost", "127.0.0.1"]) : nil
            try await place.withServer(tls: tls) { server, log in
                #expect(server.isSecure == isSecure)
                let got = try await curl(
                    "--cacert", authority.certificatePath, "--include", server.baseURL + "/a%20b.mp4?x")
                #expect(got.status == 0, "\(got.error)")
                #expect(got.output.suffix(Self.size) == pattern(Self.size)[...])
                let head = String(decoding: got.output.dropLast(Self.size), as: UTF8.self)
                #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
                for line in ["Content-Length: \(Self.size)", "Content-Type: video/mp4", "Accept-Ranges: bytes"] {
                    #expect(head.contains("\r\n\(line)\r\n"), "\(head)")
                }
                let record = try await log.first(1)[0]
                #expect(record.method == "GET" && record.path == "a b.mp4" && record.status == 200)
                #expect(record.bytesSent == Int64(Self.size) && record.isComplete && record.connection == 1)
                #expect(record.time > .seconds(1_600_000_000) && record.range == nil && record.fault.isEmpty)
            }
        }
    }

    @Test("A certificate is trusted only with its authority and only for its names")
    func trust() async throws {
        try await inPlace { place in
            try place.write([1], to: "site/a")
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            try await place.withServer(tls: authority.issue(for: ["game.test"])) { server, _ in
                let url = "https://game.test:\(server.port)/a"
                let resolve = "game.test:\(server.port):127.0.0.1"
                #expect(try await curl("--resolve", resolve, url).status == 60)
                #expect(try await curl("--resolve", resolve, "--cacert", authority.certificatePath, url).output == [1])
                let other = try await curl("--cacert", authority.certificatePath, server.baseURL + "/a")
                #expect(other.status == 60)
            }
        }
    }

    @Test(
        "Ranges are served byte for byte",
        arguments: [
            ("0-0", 0..<1), ("1000000-", 1_000_000..<3_000_000), ("-5", 2_999_995..<3_000_000), ("7-99", 7..<100),
        ])
    func range(range: String, expected: Range<Int>) async throws {
        try await inPlace { place in
            try place.write(pattern(Self.size), to: "site/a.bin")
            try await place.withServer { server, log in
                let got = try await curl("--range", range, "--dump-header", "/dev/stderr", server.baseURL + "/a.bin")
                #expect(got.output[...] == pattern(Self.size)[expected])
                #expect(got.error.hasPrefix("HTTP/1.1 206 "))
                let line = "Content-Range: bytes \(expected.lowerBound)-\(expected.upperBound - 1)/\(Self.size)\r\n"
                #expect(got.error.contains(line), "\(got.error)")
                let record = try await log.first(1)[0]
                #expect(record.status == 206 && record.range == "bytes=\(range)")
                #expect(record.bytesSent == Int64(expected.count))
            }
        }
    }

    @Test("A range behind the end is refused with the size")
    func unsatisfiable() async throws {
        try await inPlace { place in
            try place.write([1, 2, 3], to: "site/a")
            try await place.withServer { server, _ in
                let got = try await curl("--include", "--range", "3-", server.baseURL + "/a")
                #expect(got.text.hasPrefix("HTTP/1.1 416 ") && got.text.contains("Content-Range: bytes */3\r\n"))
            }
        }
    }

    @Test("If-Range takes entity tag or date, and a changed file starts anew")
    func ifRange() async throws {
        try await inPlace { place in
            try place.write(pattern(1000), to: "site/a")
            try await place.withServer { server, _ in
                let url = server.baseURL + "/a"
                let head = try await curl("--head", url).text
                let tag = try #require(field("ETag", head))
                let modified = try #require(field("Last-Modified", head))
                #expect(tag.hasPrefix("\"") && tag.hasSuffix("\""))
                for validator in [tag, modified] {
                    let got = try await curl("--range", "10-19", "--header", "If-Range: \(validator)", url)
                    #expect(got.output[...] == pattern(1000)[10..<20])
                }
                let known = try await curl("--include", "--header", "If-None-Match: W/\(tag)", url)
                #expect(known.text.hasPrefix("HTTP/1.1 304 ") && known.text.hasSuffix("\r\n\r\n"))
                let weak = try await curl("--range", "10-19", "--header", "If-Range: W/\(tag)", url)
                #expect(weak.output == pattern(1000))
                try place.write(pattern(900), to: "site/a")
                #expect(try await curl("--range", "10-19", "--header", "If-Range: \(tag)", url).output == pattern(900))
            }
        }
    }

    @Test("HEAD has the head of GET and nothing else")
    func head() async throws {
        try await inPlace { place in
            try place.write(pattern(5000), to: "site/a.json")
            try await place.withServer { server, log in
                let got = try await curl("--head", server.baseURL + "/a.json")
                #expect(got.text.contains("Content-Length: 5000\r\n") && got.text.hasSuffix("\r\n\r\n"))
                #expect(got.text.contains("Content-Type: application/json\r\n"))
                #expect(try await log.first(1)[0].bytesSent == 0)
            }
        }
    }

    @Test("One connection serves many requests")
    func keepAlive() async throws {
        try await inPlace { place in
            for name in ["a", "b", "c"] { try place.write(Array(name.utf8), to: "site/\(name)") }
            try await place.withServer { server, log in
                let urls = ["a", "none", "b", "c"].map { server.baseURL + "/" + $0 }
                let got = try await curl(urls[0], urls[1], urls[2], urls[3])
                #expect(got.text == "a404 Not Found\nbc")
                let records = try await log.first(4)
                #expect(records.map(\.status) == [200, 404, 200, 200])
                #expect(records.allSatisfy { $0.connection == 1 && $0.isComplete })
            }
        }
    }

    @Test("Requests sent at once are answered in order")
    func pipelining() async throws {
        try await inPlace { place in
            try place.write(Array("first".utf8), to: "site/a")
            try place.write(Array("second".utf8), to: "site/b")
            try await place.withServer { server, _ in
                let text =
                    "GET /a HTTP/1.1\r\nHost: h\r\n\r\nHEAD /a HTTP/1.1\r\nHost: h\r\n\r\n"
                    + "GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
                let got = try await exchange(server.port, Array(text.utf8))
                let bodies = got.components(separatedBy: "\r\n\r\n")
                #expect(bodies.count == 4 && bodies[1].hasPrefix("firstHTTP/1.1 200") && bodies[3] == "second")
            }
        }
    }

    @Test(
        "Malformed requests are answered and the connection is closed",
        arguments: [
            ("nonsense\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400), ("GET /../x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("BREW / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 501),
            ("DELETE /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 405),
            ("GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505), ("\u{16}\u{3}\u{1}\u{2}", 400),
            ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", 405),
            ("GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", 413),
        ])
    func malformed(text: String, status: Int) async throws {
        try await inPlace { place in
            try place.write([1], to: "site/a")
            try await place.withServer { server, log in
                let got = try await exchange(server.port, Array(text.utf8))
                #expect(got.hasPrefix("HTTP/1.1 \(status) "), "\(got)")
                #expect(got.contains("Connection: close\r\n"))
                #expect(got.contains("Allow: GET, HEAD\r\n") == (status == 405))
                #expect(try await log.first(1)[0].status == status)
            }
        }
    }

    @Test("Lines and headers beyond the limits are refused though more bytes follow")
    func limits() async throws {
        try await inPlace { place in
            try await place.withServer { server, _ in
                let long = String(repeating: "a", count: 100_000)
                let line = try await exchange(server.port, Array("GET /\(long)".utf8))
                #expect(line.hasPrefix("HTTP/1.1 414 "))
                let header = try await exchange(server.port, Array("GET / HTTP/1.1\r\nHost: h\r\nA: \(long)".utf8))
                #expect(header.hasPrefix("HTTP/1.1 431 "))
            }
        }
    }

    @Test("Nothing outside the folder can be reached")
    func escape() async throws {
        try await inPlace { place in
            try place.write(Array("secret".utf8), to: "secret")
            try place.write(Array("open".utf8), to: "site/open")
            let site = place.site
            try check("symlink") { symlink("../secret", site + "/relative") }
            try check("symlink") { symlink("/etc/passwd", site + "/absolute") }
            try check("symlink") { symlink("open", site + "/inside") }
            try check("mkdir") { mkdir(site + "/folder", 0o755) }
            try check("mkfifo") { mkfifo(site + "/pipe", 0o600) }
            try await place.withServer { server, _ in
                for path in ["relative", "absolute", "folder", "folder/", "pipe", "", "none", "open/x"] {
                    let got = try await curl("--path-as-is", "--include", "\(server.baseURL)/\(path)")
                    #expect(got.text.hasPrefix("HTTP/1.1 404 "), "\(path): \(got.text)")
                }
                for path in ["../secret", "%2e%2e/secret", "folder/../../secret"] {
                    let got = try await curl("--path-as-is", "--include", "\(server.baseURL)/\(path)")
                    #expect(got.text.hasPrefix("HTTP/1.1 400 "), "\(path): \(got.text)")
                }
                #expect(try await curl(server.baseURL + "/inside").text == "open")
            }
        }
    }

    @Test("Many downloads at once are all whole", arguments: [false, true])
    func parallel(isSecure: Bool) async throws {
        try await inPlace { place in
            let content = pattern(4_000_000)
            try place.write(content, to: "site/a")
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            try await place.withServer(tls: isSecure ? authority.issue(for: ["localhost"]) : nil) { server, log in
                let url = server.baseURL + "/a"
                let results = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<12 {
                        group.addTask { try await curl("--cacert", authority.certificatePath, url).output == content }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(results == Array(repeating: true, count: 12))
                #expect(Set(try await log.first(12).map(\.connection)).count == 12)
            }
        }
    }

    @Test("A client that leaves in the middle is logged as cut short")
    func clientLeaves() async throws {
        try await inPlace { place in
            try place.write([UInt8](repeating: 1, count: 30_000_000), to: "site/a")
            try await place.withServer { server, log in
                let connection = try connected(server.port)
                let fd = connection.rawValue
                let text = Array("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
                try check("send") { send(fd, text, text.count, Int32(MSG_NOSIGNAL)) }
                var byte: UInt8 = 0
                try check("recv") { recv(fd, &byte, 1, 0) }
                try connection.close()
                let record = try await log.first(1)[0]
                #expect(!record.isComplete && record.bytesSent < 30_000_000 && record.status == 200)
            }
        }
    }

    @Test("Clients that do nothing, or send a request slowly, are cut off", arguments: ["", "GET / HTTP/1.1\r\nHo"])
    func idle(text: String) async throws {
        try await inPlace { place in
            try await place.withServer(idleMax: .milliseconds(100)) { server, _ in
                // Reads until the server closes; the limit of 20 seconds would be an error.
                let got = try await exchange(server.port, Array(text.utf8))
                #expect(got.isEmpty)
            }
        }
    }

    @Test("More clients than connections wait for their turn")
    func connectionLimit() async throws {
        try await inPlace { place in
            try place.write([1], to: "site/a")
            try await place.withServer(idleMax: .milliseconds(500)) { server, _ in
                var idle: [ConnectionBox] = []
                for _ in 0..<280 { idle.append(ConnectionBox(try connected(server.port))) }
                let got = try await curl(server.baseURL + "/a")
                #expect(got.output == [1], "\(got.error)")
                #expect(idle.count == 280)
            }
        }
    }

    @Test("A port that is taken and a folder that is not there are named")
    func startFails() async throws {
        try await inPlace { place in
            try await place.withServer { server, _ in
                let error = await #expect(throws: DevelopmentServerError.self) {
                    _ = try await StaticServer.start(folder: place.site, port: server.port) { _ in }
                }
                #expect(error?.code == .port)
                #expect(error?.description.contains("\(server.port)") == true)
            }
            let error = await #expect(throws: DevelopmentServerError.self) {
                _ = try await StaticServer.start(folder: place.folder + "/none") { _ in }
            }
            #expect(error?.code == .folder)
        }
    }

    private func field(_ name: String, _ head: String) -> String? {
        head.components(separatedBy: "\r\n").first { $0.hasPrefix(name + ": ") }.map {
            String($0.dropFirst(name.count + 2))
        }
    }
}
