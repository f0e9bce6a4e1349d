// Pages that come instead of a file, and pages that are the file.
import AssetsModel
import Testing

@Suite("Sign-in pages")
struct CaptivePortalTests {
    private static let html = Array("\u{FEFF} \r\n<!DOCTYPE HTML><html>".utf8)
    private static let tag = Array("<meta http-equiv=refresh>".utf8)
    private static let bytes = Array("PK\u{3}\u{4}".utf8)

    private enum Outcome: Equatable {
        case portal
        case taken
        case other
    }

    /// What a 200 with such a body comes to, before its end.
    private func answer(
        _ head: TransportHead, _ body: [UInt8] = html, url: String = assetURL, length: Int64 = 0,
        _ change: (inout TransferPlan.Order) -> Void = { _ in }
    ) -> (outcome: TransferPlan.Action, plan: TransferPlan) {
        var plan = makePlan(length: length, resume: length > 0 ? note() : nil) {
            $0.url = url
            change(&$0)
        }
        _ = plan.begin()
        let action = plan.head(head)
        guard plan.mustSeeBeginning else { return (action, plan) }
        return (plan.beginning(body), plan)
    }

    private func isPortal(_ action: TransferPlan.Action) -> Bool {
        action.interruption?.reason == .portal && action.interruption?.kind == .unreachable
    }

    private static let page = head(200, ["Content-Type": "text/html; charset=utf-8", "Content-Length": "500"])

    @Test(
        "A page in place of a kind of file that no page is, is the network's",
        arguments: ["/a.zip", "/a.tar.zst", "/A.PAK?v=2", "/dir.html/a.bin"])
    func fileNames(path: String) {
        #expect(isPortal(answer(Self.page, url: "https://a.example" + path).outcome))
        #expect(isPortal(answer(Self.page, Self.tag, url: "https://a.example" + path).outcome))
        // Whatever the server calls it.
        #expect(isPortal(answer(head(200), url: "https://a.example" + path).outcome))
        // What is called a page and is none, is the file of a server that does not know better.
        #expect(answer(Self.page, Self.bytes, url: "https://a.example" + path).outcome.start != nil)
        #expect(answer(head(200), Self.tag, url: "https://a.example" + path).outcome.start != nil)
        #expect(answer(head(200), [], url: "https://a.example" + path).outcome.start != nil)
    }

    @Test(
        "Who asks for a page gets it",
        arguments: ["/index.html", "/a.HTM", "/a.php?x=b.zip", "/", "/docs/guide", "/docs/v1.2", "/a.zip/", "/.zip"])
    func pages(path: String) {
        #expect(answer(Self.page, url: "https://a.example" + path).outcome.start != nil)
    }

    @Test("Who asks for a page gets it also when its size is another than announced, or it has changed")
    func pagesThatChange() {
        let url = "https://a.example/index.html"
        #expect(answer(Self.page, url: url) { $0.expectedSize = 400 }.outcome.start != nil)
        #expect(answer(Self.page, url: url, length: 60).outcome.start != nil)
        // Also without a name that says so, where the server names the version.
        var named = Self.page
        named.headers.append(HeaderField(name: "ETag", value: "W/\"v2\""))
        #expect(answer(named) { $0.expectedSize = 400 }.outcome.start != nil)
        #expect(answer(named, length: 60).outcome.start != nil)
        // Or where it has the size that was announced.
        #expect(answer(Self.page) { $0.expectedSize = 500 }.outcome.start != nil)
        #expect(answer(Self.page, url: "https://a.example/a.zip") { $0.expectedSize = 500 }.outcome.start != nil)
    }

    @Test("A page in place of a manifest is the network's, unless the manifest is called a page")
    func manifest() {
        let url = "https://a.example/manifest"
        #expect(answer(Self.page, url: url).outcome.start != nil)
        #expect(isPortal(answer(Self.page, url: url) { $0.isManifest = true }.outcome))
        #expect(isPortal(answer(head(200, ["ETag": etag]), url: url) { $0.isManifest = true }.outcome))
        #expect(answer(Self.page, Array("{}".utf8), url: url) { $0.isManifest = true }.outcome.start != nil)
        #expect(answer(Self.page, url: url + ".html") { $0.isManifest = true }.outcome.start != nil)
    }

    @Test("A page of another size than announced, of no version, is the network's")
    func size() {
        #expect(isPortal(answer(Self.page) { $0.expectedSize = 400 }.outcome))
        let essential = answer(Self.page) {
            $0.expectedSize = 400
            $0.sizeMustMatch = true
        }
        #expect(isPortal(essential.outcome))
        #expect(answer(Self.page, Self.bytes) { $0.expectedSize = 400 }.outcome.start != nil)
    }

    @Test("A page without a version never takes the place of bytes that had one")
    func goodBytes() {
        #expect(isPortal(answer(Self.page, length: 60).outcome))
        #expect(isPortal(answer(head(200, ["Content-Type": "text/html"]), length: 60).outcome))
        #expect(answer(Self.page, Self.bytes, length: 60).outcome.start?.offset == 0)
    }

    @Test("A page whose length is not told is judged when it has come")
    func untilTheEnd() {
        let head = head(200, ["Content-Type": "text/html", "Transfer-Encoding": "chunked"])
        var (action, plan) = answer(head) { $0.expectedSize = 400 }
        #expect(action.start != nil)
        #expect(plan.body(300) == .append)
        var right = plan
        let ended = plan.end(nil)
        // Its bytes are none of the file's.
        #expect(isPortal(ended) && ended.interruption?.hasAdvanced == false)
        #expect(right.body(100) == .append)
        #expect(right.end(nil) == .complete(length: 400))
        (action, plan) = answer(head) {
            $0.expectedSize = 400
            $0.sizeMustMatch = true
        }
        #expect(isPortal(plan.body(401)))
        (action, plan) = answer(head) { $0.digest = digest(1) }
        #expect(plan.body(401) == .append)
        _ = plan.end(nil)
        #expect(isPortal(plan.checked(digest(2))))
    }

    @Test("A packed page is not unpacked to be recognised")
    func packed() {
        var packed = Self.page
        packed.headers.append(HeaderField(name: "Content-Encoding", value: "gzip"))
        #expect(isPortal(answer(packed, url: "https://a.example/a.zip").outcome))
        #expect(answer(packed).outcome.refusal?.reason == .http)
    }

    @Test("A server that asks to sign in is taken at its word")
    func status() {
        #expect(isPortal(answer(head(511)).outcome))
    }

    @Test(
        "A redirect away to a page for signing in is the network's, any other that is not allowed is the server's",
        arguments: [
            (302, "http://wifi.example/", true), (303, "https://captive.example/x", true),
            (307, "http://x.example/hotspot/login.html?a", true),
            (302, "http://x.example/?u=https://a.example/file", true),
            (302, "http://login.wifi.example/", true), (301, "http://wifi.example/", false),
            (302, "http://x.example/file", false), (302, "https://x.example/files/loginscreen.zip", false),
            (302, "http://a.example/login", false), (302, "https://portal/", false),
        ])
    func redirect(status: Int, location: String, isNetwork: Bool) {
        let action = answer(head(status, ["Location": location])) { $0.admits = { $0 == "a.example" } }.outcome
        #expect(isPortal(action) == isNetwork)
        #expect((action.refusal != nil) == !isNetwork)
    }

    @Test("A redirect to a page for signing in that the app allows is followed")
    func allowedRedirect() {
        #expect(answer(head(302, ["Location": "https://login.example/"])).outcome.request != nil)
    }
}

@Suite("Packed bodies")
struct ContentCodingTests {
    private func answer(
        _ coding: String, url: String = assetURL, _ change: (inout TransferPlan.Order) -> Void = { _ in }
    ) -> TransferPlan.Action {
        var plan = makePlan {
            $0.url = url
            change(&$0)
        }
        _ = plan.begin()
        return plan.head(
            head(
                200,
                [
                    "Content-Encoding": coding, "Content-Length": "100", "ETag": etag,
                    "Content-Type": "application/octet-stream",
                ]))
    }

    @Test("A server that packs what it was asked not to pack has not sent the file")
    func refused() {
        for coding in ["gzip", "br", "Deflate", "identity, gzip"] {
            #expect(answer(coding).refusal?.reason == .http)
        }
        #expect(answer("gzip", url: "https://a.example/a.br").refusal != nil)
    }

    @Test("Where the file is what the server calls packed, it is taken")
    func taken() {
        #expect(answer("identity").start != nil && answer("").start != nil)
        #expect(answer("x-gzip", url: "https://a.example/a.tar.GZ").start != nil)
        #expect(answer("gzip") { $0.expectedSize = 100 }.start != nil)
        #expect(answer("gzip") { $0.digest = digest(1) }.start != nil)
    }
}
