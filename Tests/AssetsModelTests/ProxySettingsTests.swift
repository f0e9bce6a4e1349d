// Which proxy a request takes, against tables.
import AssetsModel
import Testing

@Suite("Proxies")
struct ProxySettingsTests {
    private func choice(_ url: String, _ environment: [String: String], _ setting: String = "environment") throws
        -> ProxyChoice
    {
        ProxySettings(environment: environment, setting: setting).choice(for: try WebAddress(url))
    }

    private func shown(_ choice: ProxyChoice) -> String {
        switch choice {
        case .direct: "direct"
        case .through(let server): server.description
        case .unusable(let name): "unusable: \(name)"
        }
    }

    @Test(
        "A proxy's URL is read from its parts",
        arguments: [
            ("proxy.example.com:3128", "http://proxy.example.com:3128"),
            ("http://Proxy.Example.com:3128/", "http://proxy.example.com:3128"),
            ("http://proxy.example.com", "http://proxy.example.com:1080"),
            ("https://proxy.example.com", "https://proxy.example.com:443"),
            ("https://proxy.example.com:80", "https://proxy.example.com:80"),
            ("socks5h://[2001:db8::1]:9050", "socks5h://[2001:db8::1]:9050"),
            ("SOCKS5://127.0.0.1", "socks5://127.0.0.1:1080"),
            ("http://user:secret@proxy.example.com:3128", "http://proxy.example.com:3128"),
        ])
    func reading(text: String, expected: String) throws {
        #expect(try #require(ProxyServer(text)).description == expected)
    }

    @Test("Credentials are taken out of the URL, without their percent signs")
    func credentials() throws {
        let server = try #require(ProxyServer("http://a%40b:p%3Aw%2Fx@proxy.example.com:3128"))
        #expect(server.user == "a@b" && server.password == "p:w/x")
        #expect(try #require(ProxyServer("http://me@proxy.example.com")).password == "")
        #expect(try #require(ProxyServer("http://proxy.example.com")).user == nil)
    }

    @Test(
        "What is no proxy is none",
        arguments: [
            "", "://", "http://", "ftp://proxy.example.com", "http://proxy.example.com/path", "http://proxy:99999",
            "http://a b:3128", "http://user:%zz@proxy:3128", "http://user:%00@proxy:3128", "socks9://x",
            "http://proxy?x", String(repeating: "a", count: 2000),
        ])
    func nonsense(text: String) {
        #expect(ProxyServer(text) == nil)
    }

    @Test(
        "Variables are those of curl, in its order",
        arguments: [
            (["https_proxy": "a.example:1", "HTTPS_PROXY": "b.example:1"], "http://a.example:1"),
            (["HTTPS_PROXY": "b.example:1", "all_proxy": "c.example:1"], "http://b.example:1"),
            (["all_proxy": "c.example:1", "ALL_PROXY": "d.example:1"], "http://c.example:1"),
            (["ALL_PROXY": "socks5h://d.example:1"], "socks5h://d.example:1"),
            (["http_proxy": "e.example:1"], "direct"), (["HTTP_PROXY": "e.example:1"], "direct"),
            (["https_proxy": "", "all_proxy": "c.example:1"], "http://c.example:1"),
            (["https_proxy": "ftp://secret@x"], "unusable: https_proxy"), ([:], "direct"),
        ])
    func variables(environment: [String: String], expected: String) throws {
        #expect(shown(try choice("https://cdn.example.com/x", environment)) == expected)
    }

    @Test("The device's own setting goes before the variables")
    func setting() throws {
        let environment = ["https_proxy": "a.example:1", "no_proxy": "near.example"]
        #expect(shown(try choice("https://x.example/", environment, "none")) == "direct")
        #expect(shown(try choice("https://x.example/", environment, "http://b.example:2")) == "http://b.example:2")
        #expect(shown(try choice("https://near.example/", environment, "http://b.example:2")) == "direct")
        #expect(ProxySettings.setting("http://b.example:2") != nil && ProxySettings.setting("none") != nil)
        #expect(ProxySettings.setting("ftp://b.example") == nil && ProxySettings.setting("") == nil)
    }

    @Test(
        "Requests to this machine never take a proxy",
        arguments: ["https://localhost/", "https://127.0.0.1:8443/x", "https://a.localhost/", "https://[::1]/"])
    func loopback(url: String) throws {
        #expect(shown(try choice(url, ["all_proxy": "a.example:1", "http_proxy": "a.example:1"])) == "direct")
    }

    @Test(
        "Hosts are excepted by name, by address and by network",
        arguments: [
            ("example.com", "example.com", true), ("example.com", "cdn.example.com", true),
            (".example.com", "cdn.example.com", true), (".example.com", "example.com", true),
            ("*.example.com", "cdn.example.com", true), ("example.com", "badexample.com", false),
            ("EXAMPLE.com.", "cdn.example.com", true), ("a.example, b.example", "x.b.example", true),
            ("a.example b.example", "b.example", true), ("*", "anything.example", true),
            ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.11", false),
            ("10.0.0.0/8", "10.200.3.4", true), ("10.0.0.0/8", "11.0.0.1", false),
            ("192.0.2.128/25", "192.0.2.129", true), ("192.0.2.128/25", "192.0.2.1", false),
            ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::5", true), ("[2001:db8::1]", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db9::1", false), ("10.0.0.0/33", "10.0.0.1", false), ("", "x.example", false),
            (",,", "x.example", false), ("/8", "10.0.0.1", false),
        ])
    func exceptions(list: String, host: String, expected: Bool) {
        #expect(ProxyExceptions(list).contains(host) == expected)
    }

    @Test("Only what leaves the machine needs a network")
    func needsNetwork() throws {
        func needs(_ url: String, _ environment: [String: String]) throws -> Bool {
            ProxySettings(environment: environment).needsNetwork(try WebAddress(url))
        }
        #expect(try needs("https://cdn.example.com/", [:]))
        #expect(try !needs("https://localhost:8443/", [:]))
        // The proxy may have other ways, a tunnel of its own for one.
        #expect(try !needs("https://cdn.example.com/", ["https_proxy": "socks5h://127.0.0.1:9050"]))
        #expect(try needs("https://cdn.example.com/", ["https_proxy": "http://proxy.example:3128"]))
    }

    @Test(
        "Addresses are read as the kernel reads them",
        arguments: [
            ("192.0.2.1", [192, 0, 2, 1]), ("::", Array(repeating: 0, count: 16)),
            ("::1", Array(repeating: 0, count: 15) + [1]),
            ("2001:db8::1", [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1]),
            ("::ffff:192.0.2.1", Array(repeating: 0, count: 10) + [255, 255, 192, 0, 2, 1]),
            ("1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]),
        ])
    func addresses(text: String, bytes: [Int]) {
        #expect(IPAddress(text)?.bytes.map { Int($0) } == bytes)
    }

    @Test(
        "What is no address is none",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.+4", "a.b.c.d", ":", ":::", "1::2::3", "12345::", "1:2:3",
            "1:2:3:4:5:6:7:8:9", "::1.2.3", "g::1", "-1::",
        ])
    func noAddress(text: String) {
        #expect(IPAddress(text) == nil)
    }
}
