import AssetsModel
import Testing

@Suite("Admission to the queue")
struct AdmissionTests {
    private static func app(launched: Bool = false, ledger: AllowanceLedger = AllowanceLedger()) -> AppRecord {
        let restrictions = DownloadRestrictions(
            downloadAllowance: 100, essentialDownloadAllowance: 50,
            allowedDomains: ["cdn.example.com", "*.example.org"])
        let description = AppDescription(
            bundleIdentifier: "org.example.app", name: "App", version: "1", build: "1", bundleFolder: "App.app",
            executable: "App", manifestURL: "https://cdn.example.com/manifest", restrictions: restrictions,
            maxInstallSize: 100, essentialMaxInstallSize: 50, extensionIdentifier: "org.example.app.extension",
            extensionExecutable: "Extensions/E.appex/E", groups: ["group.a", "group.b"], sharedGroups: ["group.a"])
        return AppRecord(
            description: description, buildFolder: "build", source: .store, gate: .open, installedAt: .zero,
            launchedAt: launched ? .seconds(1) : nil, ledger: ledger)
    }

    private static func request(
        _ identifier: String = "file", size: Int64 = 10, url: String = "https://cdn.example.com/file",
        group: String = "group.a", essential: Bool = false, unique: String = "01234567-89AB-4CDE-8F01-23456789ABCD"
    ) -> DownloadRequest {
        DownloadRequest(
            identifier: identifier, uniqueIdentifier: unique, url: url, group: group, isEssential: essential, size: size
        )
    }

    private static func code(_ body: () throws(AssetsError) -> Void) -> AssetsError.Code? {
        do throws(AssetsError) { try body() } catch { return error.code }
        return nil
    }

    @Test("A manifest that is charged later leaves its room, and is charged once")
    func reservedManifest() throws {
        var admission = Admission(app: Self.app(), allowsLoopbackHTTP: false)
        admission.reserveManifest(bytes: 30)
        #expect(admission.essentialRemaining == 20 && admission.remaining == 100)
        #expect(admission.ledger == AllowanceLedger())
        admission.chargeManifest(bytes: 20)
        #expect(admission.essentialRemaining == 0 && admission.ledger.essential == 20)
        admission.reserveManifest(bytes: .max)
        #expect(admission.essentialRemaining == 0)
        var launched = Admission(app: Self.app(launched: true), allowsLoopbackHTTP: false)
        launched.reserveManifest(bytes: .max)
        #expect(launched.remaining == nil && launched.essentialRemaining == nil)
        try launched.schedule(Self.request(size: .max))
    }

    @Test("A SHA-256 has 32 bytes", arguments: [0, 31, 32, 33, 64])
    func sha256(count: Int) {
        var admission = Admission(app: Self.app(), allowsLoopbackHTTP: false)
        var request = Self.request()
        request.sha256 = [UInt8](repeating: 1, count: count)
        let code = Self.code { () throws(AssetsError) in try admission.schedule(request) }
        #expect(code == (count == 32 ? nil : .downloadFailedToStart))
    }

    @Test("Texts of an app do not make a reason long")
    func shortReasons() {
        let long = String(repeating: "x", count: 10_000)
        let requests = [
            Self.request(long), Self.request(long, essential: true), Self.request(group: long),
            Self.request(url: "https://" + long), Self.request(url: long), Self.request(long, size: 1000),
        ]
        for request in requests {
            var admission = Admission(app: Self.app(), allowsLoopbackHTTP: false)
            do throws(AssetsError) {
                try admission.schedule(request)
                Issue.record("admitted")
            } catch { #expect(error.description.utf8.count < 600, "\(error)") }
        }
    }

    @Test("Requests that cannot be are refused with their code")
    func refusals() {
        let long = String(repeating: "x", count: PolicyNumbers.identifierMax + 1)
        var badHeader = Self.request()
        badHeader.headers = [HeaderField(name: "X", value: "a\r\nHost: evil")]
        func method(_ method: String) -> DownloadRequest {
            var request = Self.request()
            request.method = method
            return request
        }
        var badName = Self.request()
        badName.headers = [HeaderField(name: "X: a\r\nHost", value: "evil")]
        var bigBody = Self.request()
        bigBody.body = [UInt8](repeating: 0, count: PolicyNumbers.requestBodyMax + 1)
        let cases: [(DownloadRequest, AssetsError.Code?)] = [
            (Self.request(), nil),
            (Self.request(""), .downloadFailedToStart),
            (Self.request(long), .downloadFailedToStart),
            (Self.request(size: -1), .downloadFailedToStart),
            (Self.request(url: "http://cdn.example.com/file"), .downloadFailedToStart),
            (Self.request(url: "file:///etc/passwd"), .downloadFailedToStart),
            (Self.request(group: "group.b"), .downloadFailedToStart),
            (Self.request(group: "../../x"), .downloadFailedToStart),
            (Self.request(unique: "../../../etc/passwd"), .downloadFailedToStart),
            (Self.request(unique: "01234567-89ab-4cde-8f01-23456789abcd"), .downloadFailedToStart),
            (Self.request(url: "https://elsewhere.test/file"), .disallowedByDomain),
            (Self.request(url: "https://cdn.example.com@elsewhere.test/"), .disallowedByDomain),
            (Self.request(url: "https://a.b.example.org/file"), nil),
            (Self.request(url: "https://example.org/file"), .disallowedByDomain),
            (Self.request(essential: true), .essentialDownloadNotPermitted),
            (Self.request(size: 101), .wouldExceedAllowance),
            (badHeader, .downloadFailedToStart),
            (badName, .downloadFailedToStart),
            (method("POST"), nil),
            (method("GET / HTTP/1.1\r\nHost: evil"), .downloadFailedToStart),
            (method(""), .downloadFailedToStart),
            (method("HEAD"), .downloadFailedToStart),
            (bigBody, .downloadFailedToStart),
        ]
        for (request, expected) in cases {
            var admission = Admission(app: Self.app(), allowsLoopbackHTTP: false)
            let code = Self.code { () throws(AssetsError) in try admission.schedule(request) }
            #expect(code == expected, "\(request.url) \(request.identifier.prefix(20)) \(request.uniqueIdentifier)")
        }
    }

    @Test("The allowance is for the sum, and the first launch ends it")
    func allowance() {
        var admission = Admission(app: Self.app(), allowsLoopbackHTTP: false)
        for number in 0..<3 {
            #expect(
                Self.code { () throws(AssetsError) in try admission.schedule(Self.request("\(number)", size: 33)) }
                    == nil)
        }
        #expect(admission.remaining == 1)
        #expect(
            Self.code { () throws(AssetsError) in try admission.schedule(Self.request("last", size: 33)) }
                == .wouldExceedAllowance)
        #expect(admission.essentialRemaining == 50)

        var launched = Admission(app: Self.app(launched: true), allowsLoopbackHTTP: false)
        #expect(launched.remaining == nil)
        #expect(launched.essentialRemaining == nil)
        let free = Self.request("big", size: 1 << 40, url: "https://elsewhere.test/file")
        #expect(Self.code { () throws(AssetsError) in try launched.schedule(free) } == nil)
    }

    @Test("The manifest counts against the essential allowance where there is one")
    func manifest() {
        var admission = Admission(app: Self.app(), allowsLoopbackHTTP: false)
        #expect(admission.manifestLimit == 50)
        admission.chargeManifest(bytes: 20)
        #expect(admission.essentialRemaining == 30)
        #expect(admission.remaining == 100)
        // A later one may have what is left.
        #expect(admission.manifestLimit == 30)
        admission.chargeManifest(bytes: 40)
        #expect(admission.manifestLimit == 0)
    }

    @Test("Plain http only to loopback hosts, and only in Developer Mode")
    func loopback() {
        for (url, mode, admitted) in [
            ("http://localhost:80/x", true, true), ("http://127.0.0.1/x", true, true), ("http://[::1]:8/x", true, true),
            ("http://localhost/x", false, false), ("http://127.0.0.1.evil.test/x", true, false),
            ("http://example.com/x", true, false), ("HTTPS://example.com", false, true),
        ] {
            let origin = try? RequestOrigin(url: url, allowsLoopbackHTTP: mode)
            #expect((origin != nil) == admitted, "\(url)")
        }
    }
}

@Suite("The launch gate")
struct LaunchGateTests {
    @Test("Unknown, installing and gated apps are refused with their reason; an open one may start")
    func decisions() throws {
        func code(_ result: Result<AppRecord, AssetsError>) -> AssetsError.Code? {
            if case .failure(let error) = result { error.code } else { nil }
        }
        #expect(code(LaunchGate.decide(app: nil, identifier: "x", installing: nil)) == .notInstalled)
        #expect(code(LaunchGate.decide(app: nil, identifier: "x", installing: .archive)) == .gateShut)
        let description = AppDescription(
            bundleIdentifier: "x", name: "X", version: "1", build: "1", bundleFolder: "X.app", executable: "X",
            manifestURL: "https://e.test",
            restrictions: .init(downloadAllowance: 0, essentialDownloadAllowance: nil, allowedDomains: []),
            maxInstallSize: 0, essentialMaxInstallSize: nil, extensionIdentifier: "x.e", extensionExecutable: "e",
            groups: [], sharedGroups: [])
        var app = AppRecord(
            description: description, buildFolder: "b", source: .store, gate: .shut, installedAt: .zero)
        #expect(code(LaunchGate.decide(app: app, identifier: "x", installing: .essential)) == .gateShut)
        app.gate = .open
        #expect(code(LaunchGate.decide(app: app, identifier: "x", installing: nil)) == nil)
    }
}
