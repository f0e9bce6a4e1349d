import Testing

@testable import DevelopmentServer

@Suite("Reading requests")
struct RequestParserTests {
    private func parse(_ text: String) throws(RequestFault) -> (head: RequestHead, length: Int)? {
        try RequestParser.parse(Array(text.utf8))
    }

    @Test("A request is read, and what follows it is left")
    func whole() throws {
        let text = "GET /a%20b/./c//d?x=/.. HTTP/1.1\r\nHost: h\r\nRANGE:  bytes=1-2 \r\nIf-Range: \"x\"\r\n\r\n"
        let (head, length) = try #require(try parse(text + "GET /next"))
        #expect(length == text.utf8.count)
        #expect(head.method == "GET" && head.path == "a b/c/d" && head.keepsAlive && !head.hasBody)
        #expect(head.range == "bytes=1-2" && head.ifRange == "\"x\"")
        for end in 0..<text.utf8.count { #expect(try RequestParser.parse(Array(text.utf8.prefix(end))) == nil) }
    }

    @Test(
        "Keep-alive follows version and header",
        arguments: [
            ("HTTP/1.1\r\nHost: h", true), ("HTTP/1.1\r\nHost: h\r\nConnection: foo , Close", false),
            ("HTTP/1.0\r\nHost: h", false), ("HTTP/1.0\r\nConnection: keep-alive", true),
        ])
    func keepAlive(rest: String, keepsAlive: Bool) throws {
        #expect(try #require(try parse("GET / \(rest)\r\n\r\n")).head.keepsAlive == keepsAlive)
    }

    @Test("A proxy's absolute address gives its path", arguments: ["http://h/a", "https://h:1/a?b", "http://h//a"])
    func absolute(target: String) throws {
        #expect(try #require(try parse("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n")).head.path == "a")
    }

    @Test(
        "Malformed requests have their status",
        arguments: [
            ("GET /\r\n\r\n", 400), ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400), ("GET / HTTP/1.1\nHost: h\n\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: h\r\nnocolon\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: h\u{0}\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: h\rx\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
            ("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET /%4 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET /.. HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET /a/%2e%2E/b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("GET /# HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET /\u{E4} HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505), ("GET / HTTX/1.1\r\nHost: h\r\n\r\n", 400),
            ("\u{16}\u{3}\u{1}", 400), ("(", 400),
        ])
    func malformed(text: String, status: Int) {
        #expect(throws: RequestFault(status: status)) { try parse(text) }
    }

    @Test("Requests beyond the limits are refused before they are complete")
    func limits() {
        let long = String(repeating: "a", count: 8 << 10)
        #expect(throws: RequestFault(status: 414)) { try parse("GET /" + long) }
        #expect(throws: RequestFault(status: 414)) { try parse("GET /\(long) HTTP/1.1\r\nHost: h\r\n\r\n") }
        #expect(throws: RequestFault(status: 431)) { try parse("GET / HTTP/1.1\r\nHost: h\r\nA: \(long)\(long)") }
        let many = String(repeating: "A: b\r\n", count: 200)
        #expect(throws: RequestFault(status: 431)) { try parse("GET / HTTP/1.1\r\nHost: h\r\n\(many)\r\n") }
    }

    @Test("A body is noticed", arguments: ["Content-Length: 1", "Transfer-Encoding: chunked"])
    func body(field: String) throws {
        #expect(try #require(try parse("POST / HTTP/1.1\r\nHost: h\r\n\(field)\r\n\r\n")).head.hasBody)
    }

    @Test(
        "Ranges",
        arguments: [
            (nil, ByteRange.whole), ("bytes=0-0", .part(first: 0, last: 0)), ("bytes=2-", .part(first: 2, last: 9)),
            ("bytes=-3", .part(first: 7, last: 9)), ("bytes=-30", .part(first: 0, last: 9)),
            ("bytes=9-100", .part(first: 9, last: 9)), ("BYTES=1-2", .part(first: 1, last: 2)),
            ("bytes=10-", .unsatisfiable), ("bytes=99999999999999999999-", .unsatisfiable),
            ("bytes=-0", .unsatisfiable),
            ("bytes=5-4", .whole), ("bytes=0-1,3-4", .whole), ("bytes=-", .whole), ("bytes=a-b", .whole),
            ("bytes=1-2-3", .whole), ("items=0-1", .whole), ("bytes=+1-2", .whole), ("bytes= 1-2", .whole),
        ] as [(String?, ByteRange)])
    func ranges(header: String?, range: ByteRange) {
        #expect(ByteRange(header: header, size: 10) == range)
    }

    @Test("An empty file has no range")
    func emptyFile() {
        #expect(ByteRange(header: "bytes=0-", size: 0) == .unsatisfiable)
        #expect(ByteRange(header: "bytes=-1", size: 0) == .unsatisfiable)
    }

    @Test(
        "Dates",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_709_164_799, "Wed, 28 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (Int64.min, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] as [(Int64, String)])
    func dates(seconds: Int64, text: String) {
        #expect(HTTPDate.format(seconds) == text)
    }
}
