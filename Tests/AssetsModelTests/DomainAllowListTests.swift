import Testing

@testable import AssetsModel

@Suite("Domain allow list")
struct DomainAllowListTests {
    private static let list = DomainAllowList([
        "cdn.example.com", "*.assets.example.com", "Upper.Example.ORG.", "192.0.2.7", "[2001:db8::1]", "*.bücher.test",
    ])

    @Test(
        "Hosts in the list are admitted",
        arguments: [
            "cdn.example.com", "CDN.Example.COM", "cdn.example.com.", "cdn.example.com:8443", "a.assets.example.com",
            "b.a.assets.example.com", "upper.example.org", "192.0.2.7", "192.0.2.7:443", "[2001:db8::1]",
            "2001:DB8::1", "[2001:db8::1]:443", "neue.bücher.test",
        ])
    func admits(host: String) {
        #expect(Self.list.admits(host))
    }

    @Test(
        "Hosts that only resemble an entry are refused",
        arguments: [
            "", ".", "example.com", "a.cdn.example.com", "xcdn.example.com", "assets.example.com",
            ".assets.example.com", "xassets.example.com", "a..assets.example.com", "cdn.example.com.evil.test",
            "cdn.example.com:x", "cdn.example.com:123456", "192.0.2.70", "1192.0.2.7", "2.7",
            "[2001:db8::2]", "[2001:db8::1", "[2001:db8::1]x", "cdn.example.com@evil.test", "evil.test/cdn.example.com",
            "*.assets.example.com", "xn--bcher-kva.test", "cdn.example.com..", "a b.assets.example.com",
        ])
    func refuses(host: String) {
        #expect(!Self.list.admits(host))
    }

    @Test("A wildcard of addresses admits no address")
    func wildcardIsForNames() {
        #expect(!DomainAllowList(["*.2.7"]).admits("192.0.2.7"))
        #expect(!DomainAllowList(["*.0.2.7"]).admits("192.0.2.7"))
    }

    @Test("An empty list admits nothing")
    func empty() {
        #expect(!DomainAllowList([]).admits("example.com"))
    }

    @Test(
        "Patterns are hosts, addresses, or a wildcard before a host",
        arguments: ["localhost", "*.localhost", "a-b.c_d.test", "127.0.0.1", "::1", "[::1]", "*.example.com."])
    func valid(pattern: String) {
        #expect(DomainAllowList.isValid(pattern: pattern))
    }

    @Test(
        "Other patterns are refused and admit nothing",
        arguments: [
            "", "*", "*.", "*.*.example.com", "a.*.example.com", "*example.com", "https://example.com", "example.com/",
            "example.com:443", "*.127.0.0.1", "-a.test", "a-.test", "a..test", "a b.test", ".test",
            String(repeating: "a", count: 64) + ".test",
        ])
    func invalid(pattern: String) {
        #expect(!DomainAllowList.isValid(pattern: pattern))
        #expect(!DomainAllowList([pattern]).admits(pattern))
        #expect(!DomainAllowList([pattern]).admits("a.example.com"))
    }
}
