// Requests through proxies.
import AssetsModel
import AssetsOS
import Glibc
import Testing

@testable import AssetsTransfer

@Suite("Requests through proxies", .timeLimit(.minutes(10)))
struct ProxyTests {
    private func fetch(
        _ nginx: Nginx, through proxy: ProxyServer?
    ) async throws -> (status: Int?, count: Int, failure: TransportFailure?) {
        let caller = try Caller(.init(extraAuthorities: nginx.authority))
        let result = await collect(await caller.start(TransportRequest(url: nginx.url("/file"), proxy: proxy)).0)
        await caller.stop()
        return (result.status, result.count, failure(result.end))
    }

    private func withServer(_ body: (TestDirectory, Nginx) async throws -> Void) async throws {
        let directory = try TestDirectory()
        let nginx = try Nginx(in: directory)
        try nginx.publish("file", noise(100_000))
        try await body(directory, nginx)
    }

    @Test("https goes through an http proxy by CONNECT; the server's certificate is checked all the same")
    func connect() async throws {
        try await withServer { directory, nginx in
            let proxy = try TestProxy.http(in: directory, allowing: [nginx.port])
            let result = try await fetch(nginx, through: proxy.server(.http))
            #expect(result.status == 200 && result.count == 100_000 && result.failure == nil)
            let log = try proxy.logged
            #expect(log.contains("CONNECT 127.0.0.1:\(nginx.port)"))
            let caller = try Caller()
            let request = TransportRequest(url: nginx.url("/file"), proxy: try proxy.server(.http))
            let distrusting = await collect(await caller.start(request).0)
            #expect(failure(distrusting.end)?.kind == .certificate)
            await caller.stop()
        }
    }

    @Test("A proxy that asks for a password gets it; without the right one it is the proxy's refusal")
    func credentials() async throws {
        try await withServer { directory, nginx in
            let proxy = try TestProxy.http(
                in: directory, allowing: [nginx.port], user: "player", password: "s3cret")
            let right = try await fetch(nginx, through: proxy.server(.http, user: "player", password: "s3cret"))
            #expect(right.count == 100_000 && right.failure == nil)
            for password in [nil, "wr0ng"] {
                let user = password == nil ? nil : "player"
                let result = try await fetch(nginx, through: proxy.server(.http, user: user, password: password))
                #expect(result.status == nil && result.failure?.kind == .proxy)
                #expect(result.failure?.text.hasPrefix("the proxy answered 40") == true)
                #expect(result.failure.map { !"\($0)".contains("wr0ng") } == true)
            }
        }
    }

    @Test("A proxy that lets nothing through, and one that is not there, are failures of the proxy")
    func refusals() async throws {
        try await withServer { directory, nginx in
            let proxy = try TestProxy.http(in: directory, allowing: [1])
            let refused = try await fetch(nginx, through: proxy.server(.http))
            #expect(refused.failure?.kind == .proxy && refused.failure?.text == "the proxy answered 403")
            // Nobody listens on the port of a server that is gone.
            let gone = try #require(ProxyServer("http://127.0.0.1:1"))
            let missing = try await fetch(nginx, through: gone)
            #expect(missing.failure?.kind == .proxy)
        }
    }

    @Test("SOCKS 5 with a password, names looked up here or there", arguments: [ProxyServer.Scheme.socks5, .socks5h])
    func socks(scheme: ProxyServer.Scheme) async throws {
        try await withServer { directory, nginx in
            let proxy = try TestProxy.socks(in: directory, user: "player", password: "s3cret")
            let server = try proxy.server(scheme, user: "player", password: "s3cret")
            let right = try await fetch(nginx, through: server)
            #expect(right.count == 100_000 && right.failure == nil)
            let wrong = try await fetch(nginx, through: proxy.server(scheme, user: "player", password: "wr0ng"))
            #expect(wrong.failure?.kind == .proxy)
            #expect(wrong.failure.map { !"\($0)".contains("wr0ng") } == true)
        }
    }

    @Test("libcurl's own variables have no say")
    func environment() async throws {
        try await withServer { _, nginx in
            setenv("https_proxy", "http://127.0.0.1:1", 1)
            setenv("all_proxy", "http://127.0.0.1:1", 1)
            defer {
                unsetenv("https_proxy")
                unsetenv("all_proxy")
            }
            let result = try await fetch(nginx, through: nil)
            #expect(result.count == 100_000)
        }
    }
}
