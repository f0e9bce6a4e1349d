// Pinned keys against a real server.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Testing

@Suite("Pinned public keys", .timeLimit(.minutes(10)))
struct PinTests {
    /// As `openssl` makes it of a certificate's key.
    private func pin(of server: Nginx, in directory: TestDirectory) throws -> String {
        let script = """
            openssl x509 -in "$1" -pubkey -noout | openssl pkey -pubin -outform der |
                openssl dgst -sha256 -binary | openssl base64 -A
            """
        let log = directory.path + "/pin"
        #expect(try TestProcess("/bin/sh", ["-c", script, "sh", server.authority], log: log).wait() == 0)
        return String(decoding: try DeviceTree(root: directory.path).read("pin", limit: 1000), as: UTF8.self)
    }

    @Test("A server is believed with a key that is pinned, alone or among others, and not without")
    func pins() async throws {
        let directory = try TestDirectory()
        let server = try Nginx(in: directory)
        try server.publish("file", noise(10_000))
        let right = try pin(of: server, in: directory)
        let wrong = String(repeating: "A", count: 43) + "="
        #expect(PinnedDomain.isKey(right))
        let bench = try Bench(in: directory, authority: server.authority)
        /// One after the other on one engine, so that connections could be used again.
        for (number, pins) in [[], [wrong], [right], [wrong, right], [wrong]].enumerated() {
            var spec = bench.spec(server.url("/file"), id: "x\(number)")
            spec.pins = { host in host == "127.0.0.1" ? pins : [] }
            let events = await bench.run(spec)
            guard pins == [wrong] else {
                #expect(events.receivedLength == 10_000, "\(pins)")
                continue
            }
            let interruption = try #require(events.interruption)
            #expect(interruption.failure.code == URLErrorCode.serverCertificateUntrusted)
            #expect(interruption.failure.reason.contains("NSPinnedDomains"))
            #expect(try bench.files.status("Transfers/x\(number).partial") == nil)
        }
        await bench.stop()
        #expect(try server.finish().map(\.status) == [200, 200, 200])
    }

    @Test("Pins of the host that a redirect leads to hold as well")
    func redirected() async throws {
        let directory = try TestDirectory()
        let server = try Nginx(in: directory)
        try server.publish("file", noise(10_000))
        let bench = try Bench(in: directory, authority: server.authority)
        var spec = bench.spec(server.url("/moved-again"))
        spec.pins = { $0 == "localhost" ? [String(repeating: "A", count: 43) + "="] : [] }
        let events = await bench.run(spec)
        #expect(events.interruption?.failure.code == URLErrorCode.serverCertificateUntrusted)
        await bench.stop()
        #expect(try server.finish().map(\.path) == ["/moved-again"])
    }
}
