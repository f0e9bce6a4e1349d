// URLs and header fields, read strictly.
import AssetsModel
import Testing

@Suite("URLs")
struct WebAddressTests {
    @Test(
        "What is sent is what was checked",
        arguments: [
            ("https://a.example", "a.example", "https://a.example/"),
            ("HTTPS://A.Example.:8443/B?c#d", "a.example", "https://a.example:8443/B?c"),
            ("https://u:p@a.example/x", "a.example", "https://a.example/x"),
            ("https://u@b.example:1@a.example/x", "a.example", "https://a.example/x"),
            ("https://[::1]:8080/", "::1", "https://[::1]:8080/"),
            ("http://127.0.0.1:80/x", "127.0.0.1", "http://127.0.0.1/x"),
            ("https://a.example/ä|\"", "a.example", "https://a.example/%C3%A4%7C%22"),
            ("https://a.example?q", "a.example", "https://a.example/?q"),
        ])
    func reads(text: String, host: String, url: String) throws {
        let address = try WebAddress(text)
        #expect(address.host == host)
        #expect(address.url == url)
        #expect(try WebAddress(address.url) == address)
    }

    @Test(
        "What is no URL of a web server is refused",
        arguments: [
            "", "/x", "a.example", "https:", "https:a.example", "https:///x", "https://:80/", "https://a.example:x/",
            "https://a.example:99999/", "https://a%2eexample/", "https://a.example\\.b/", "https://a b/",
            "https://[::1/",
            "https://[zz::]/", "https://bücher.example/", "https://a.example/\n", "ftp://a.example/",
            "file:///etc/passwd",
            "javascript:1", "https://.a.example/", "https://a.example:-1/", "https://[::1]x/",
            // Less one dot it would be another host to who reads it again.
            "https://a.example../", "https://a..example/", "https://./", "https://../",
        ])
    func refuses(text: String) {
        #expect(throws: WebAddress.Problem.self) { try WebAddress(text) }
    }

    @Test(
        "References are resolved as RFC 3986 says",
        arguments: [
            ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("../g", "/b/g"), ("../..", "/"),
            ("../../../g", "/g"), ("g;x=1/../y", "/b/c/y"), ("", "/b/c/d;p?q"), ("?y", "/b/c/d;p?y"), (".", "/b/c/"),
            ("g?y/./x", "/b/c/g?y/./x"), ("g#s/../x", "/b/c/g"),
            // A mark that goes before a character, and one that goes behind it.
            ("g\u{601}?y", "/b/c/g%D8%81?y"), ("g?\u{301}y", "/b/c/g?%CC%81y"), ("g\u{601}#s", "/b/c/g%D8%81"),
        ])
    func resolves(reference: String, path: String) throws {
        let base = try WebAddress("https://a/b/c/d;p?q")
        #expect(try base.resolving(reference).url == "https://a" + path)
    }
}

@Suite("Header fields")
struct HTTPFieldTests {
    @Test(
        "Dates of servers are read in their one form",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_200), ("Sunday, 06-Nov-94 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("Sun, 06 Nov 1994 8:49:37 GMT ", nil),
            ("Sun, 06 Xxx 1994 08:49:37 GMT", nil), ("", nil), ("Sun, 00 Nov 1994 08:49:37 GMT", nil),
        ])
    func dates(text: String, seconds: Int64?) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(
        "Ranges are read strictly",
        arguments: [
            "bytes 5-4/10", "bytes 0-10/10", "bytes -1-5/10", "0-5/10", "bytes 0-5", "bytes a-b/c", "bytes 0-5/", "",
        ])
    func badRanges(text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test(
        "Only a strong tag names a version",
        arguments: [
            ("\"a\"", true), ("W/\"a\"", false), ("a", false), ("\"a", false), ("\"\"", true), ("\"a\"b\"", false),
            ("\"ä\"", false), ("\"" + String(repeating: "x", count: 600) + "\"", false),
        ])
    func tags(tag: String, isStrong: Bool) {
        let head = TransportHead(status: 200, headers: [HeaderField(name: "etag", value: tag)])
        #expect((Validator.strongTag(in: head) == tag) == isStrong)
    }

    @Test("A field sent twice with different values is as good as none")
    func duplicates() {
        let fields = [HeaderField(name: "A", value: "1"), HeaderField(name: "a", value: "1")]
        #expect(TransportHead(status: 200, headers: fields).value(of: "A") == "1")
        let other = fields + [HeaderField(name: "A", value: "2")]
        #expect(TransportHead(status: 200, headers: other).value(of: "A") == nil)
    }
}
