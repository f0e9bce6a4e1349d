// Servers that ask who asks: app and extension answer, and what they say is kept to them.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

extension TestDevice {
    /// Nothing that the service wrote or said tells a credential.
    fileprivate func expectNoSecrets(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let (user, password) = (FixtureAnswer.user, FixtureAnswer.password)
        let pair = Data("\(user):\(password)".utf8).base64EncodedString()
        let wrong = Data("\(user):\(String(password.reversed()))".utf8).base64EncodedString()
        for name in Files.below(root) {
            guard let data = Files.read(root + "/" + name) else { continue }
            for secret in [password, String(password.reversed()), pair, wrong]
            where data.range(of: Data(secret.utf8)) != nil {
                // The extension's program knows how to make it.
                if name.hasSuffix("/FixtureExtension") || name.hasSuffix("/FixtureApp") { continue }
                Issue.record("\(name) holds \(secret)", sourceLocation: sourceLocation)
            }
        }
        for row in journal.all {
            #expect(!row.detail.contains(password) && !row.detail.contains(user), sourceLocation: sourceLocation)
        }
        let said = program?.errors.all.joined(separator: "\n") ?? ""
        #expect(!said.contains(password), sourceLocation: sourceLocation)
    }
}

extension FixtureAppProcess {
    /// Has it answer servers from now on.
    fileprivate func answer(_ answers: [FixtureAnswer], later: Bool = false) async throws {
        let text = String(decoding: try JSONEncoder().encode(answers), as: UTF8.self)
        #expect(try await perform((later ? "answers-later " : "answers ") + text).code == nil)
    }

    fileprivate var challenges: [FixtureRecord.Challenge] { events("challenge").compactMap(\.challenge) }

    /// Fetches an item and waits for its end.
    fileprivate func fetch(_ item: FixtureItem) async throws -> FixtureRecord {
        let start = program.output.count
        let reply = try await perform("foreground", item)
        #expect(reply.code == nil, "\(reply.reason ?? "")")
        let line = try await program.output.first(from: start, within: .seconds(90), "end of \(item.identifier)") {
            guard let record = try? FixtureRecord(line: $0) else { return false }
            return ["finished", "failed"].contains(record.event) && record.download?.identifier == item.identifier
        }
        return try FixtureRecord(line: line)
    }
}

@Suite struct AuthenticationTests {
    private func install(_ plan: FixturePlan, on device: TestDevice, from server: TestServer) async throws {
        let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        let result = try await device.install(try bundle.write(to: device.folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
    }

    @Test(
        "Protected manifest and assets: the extension answers each server once, and the app arrives whole",
        .shows("B81", "B165", "B169", "B251", by: "BADownloaderExtension.backgroundDownload(_:didReceive:)"))
    func installation() async throws {
        try await TestDevice.run { device in
            let basic = try await BasicServer.start(on: device)
            let digest = try await DigestServer.start(on: device)
            let items = [
                try basic.item("base.pack", size: 200_000, essential: true),
                digest.item("sha256/voices.pack", size: 100_000, essential: true),
                digest.item("sha256/later.pack", size: 50_000),
            ]
            var plan = FixturePlan(downloads: items)
            plan.challenges = [FixtureAnswer(.right)]
            let bundle = FixtureBundle(manifestURL: try basic.put("manifest.json", plan.encoded()))
            let result = try await device.install(try bundle.write(to: device.folder))
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.until("all files are in place") { items.allSatisfy { device.asset($0.identifier) != nil } }

            #expect(try await device.row("gate-opened").detail == "complete")
            let records = try device.extensionRecords("challenge")
            #expect(records.map(\.challenge?.port) == [basic.port, digest.port])
            #expect(
                records.map(\.challenge?.method) == [
                    "NSURLAuthenticationMethodHTTPBasic", "NSURLAuthenticationMethodHTTPDigest",
                ])
            #expect(records.map(\.challenge?.realm) == [BasicServer.realm, "digest sha256"])
            #expect(records.allSatisfy { $0.challenge?.host == "localhost" && $0.challenge?.isSecure == true })
            #expect(records.allSatisfy { $0.challenge?.status == 401 && $0.challenge?.failures == 0 })
            #expect(records.first?.challenge?.offer == "Basic realm=\"\(BasicServer.realm)\"")
            // The first is the manifest's, which is no download of the app's own making.
            #expect(records.first?.download?.isURLDownload == true)
            #expect(records.last?.download?.identifier == "sha256 voices.pack")
            #expect(try await device.rows("challenge-asked").count == 2)
            let answers = try await device.rows("challenge-answered").map(\.detail)
            #expect(answers == ["credential given", "credential given"])

            let asked = try await basic.finish()
            #expect(asked.filter { $0.path == "/manifest.json" }.map(\.status).prefix(3) == [401, 401, 200])
            // Where it was accepted it is sent without being asked for.
            #expect(asked.filter { $0.path == "/base.pack" }.map(\.status) == [200])
            #expect(asked.filter { $0.status == 200 }.allSatisfy { $0.user == FixtureAnswer.user })
            try device.expectNoSecrets()
            try await digest.stop()
        }
    }

    @Test(
        "A delegate gives a wrong credential, hears of it, gives the right one, and is not asked again",
        .shows("B49", by: "BADownloadManagerDelegate.download(_:didReceive:completionHandler:)"))
    func wrongThenRight() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let basic = try await BasicServer.start(on: device)
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.answer([FixtureAnswer(.wrong), FixtureAnswer(.right), FixtureAnswer(.cancel)])
            #expect(try await app.fetch(try basic.item("one.pack", size: 100_000)).bytes == 100_000)
            #expect(app.challenges.map(\.failures) == [0, 1])
            #expect(app.challenges.map(\.proposedUser) == [nil, FixtureAnswer.user])
            #expect(app.events("challenge").allSatisfy { $0.onMainThread == false })
            #expect(try await app.fetch(try basic.item("two.pack", size: 50_000)).bytes == 50_000)
            #expect(app.challenges.count == 2)
            // The app heard it, so the extension slept.
            #expect(try device.extensionRecords("challenge").isEmpty)
            let asked = try await basic.finish()
            #expect(asked.filter { $0.path == "/two.pack" }.map(\.status) == [200])
            try device.expectNoSecrets()
            try await app.end()
            await server.stop()
        }
    }

    @Test("Digest in all its forms is answered, and the server agrees with curl about each")
    func digestForms() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let digest = try await DigestServer.start(on: device)
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.answer([FixtureAnswer(.right)], later: true)
            for form in ["md5", "sha256", "md5-sess", "sha256-sess", "old", "stale"] {
                let item = digest.item("\(form)/a%20file.pack", size: 30_000)
                #expect(try await app.fetch(item).bytes == 30_000, "\(form)")
                try await digest.answered { $0.path.hasPrefix("/\(form)/") && $0.status == 200 }
                #expect(
                    digest.requests.last { $0.path.hasPrefix("/\(form)/") }
                        == AskedRequest(
                            path: "/\(form)/a%20file.pack", status: 200, user: FixtureAnswer.user, isSigned: true))
                // A server that only wanted a fresh nonce did not make anybody answer twice.
                #expect(app.challenges.filter { $0.realm == "digest \(form)" }.map(\.failures) == [0])
                let curl = try await Program.run(
                    "/usr/bin/env",
                    [
                        "curl", "-sS", "--digest", "-u", "\(FixtureAnswer.user):\(FixtureAnswer.password)", "--cacert",
                        device.root + "/DevelopmentCA/ca.pem", "-o", "/dev/null", "-w", "%{http_code}\n", item.url,
                    ])
                #expect(curl.output.last == "200", "\(form): \(curl.errors)")
            }
            #expect(app.challenges.allSatisfy { $0.method == "NSURLAuthenticationMethodHTTPDigest" })
            // In a space that is known nobody is asked.
            #expect(try await app.fetch(digest.item("sha256/second.pack", size: 10)).bytes == 10)
            #expect(app.challenges.count == 6)
            try device.expectNoSecrets()
            try await app.end()
            try await digest.stop()
            await server.stop()
        }
    }

    @Test("Every other disposition is honoured")
    func dispositions() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let digest = try await DigestServer.start(on: device)
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            for (action, code) in [
                (FixtureAnswer.Action.cancel, NSURLErrorCancelled),
                (.performDefault, NSURLErrorUserAuthenticationRequired),
                (.nothing, NSURLErrorUserAuthenticationRequired),
            ] {
                try await app.answer([FixtureAnswer(action)])
                let ended = try await app.fetch(digest.item("md5/\(action).pack", size: 10))
                #expect(ended.event == "failed" && ended.domain == NSURLErrorDomain && ended.code == code, "\(action)")
            }
            #expect(digest.requests.allSatisfy { !$0.isSigned })
            // The next space is asked for, and when there is none the download ends.
            try await app.answer([FixtureAnswer(.reject), FixtureAnswer(.right)])
            #expect(try await app.fetch(digest.item("both/one.pack", size: 10)).bytes == 10)
            #expect(app.challenges.suffix(2).map(\.realm) == ["digest both", "basic both"])
            try await app.answer([FixtureAnswer(.reject)])
            let rejected = try await app.fetch(digest.item("md5/two.pack", size: 10))
            #expect(rejected.code == NSURLErrorUserAuthenticationRequired)
            // For one download means for one.
            let count = app.challenges.count
            try await app.answer([FixtureAnswer(.right, isForSession: false)])
            for name in ["three", "four"] {
                #expect(try await app.fetch(digest.item("md5/\(name).pack", size: 10)).bytes == 10)
            }
            #expect(app.challenges.count == count + 2)
            try await app.end()
            try await digest.stop()
            await server.stop()
        }
    }

    @Test("A credential does not follow a redirect to another server, which is asked for by itself")
    func redirect() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let basic = try await BasicServer.start(on: device)
            let target = try basic.item("target.pack", size: 70_000)
            let digest = try await DigestServer.start(on: device, elsewhere: target.url)
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.answer([FixtureAnswer(.right), FixtureAnswer(.cancel)])
            let ended = try await app.fetch(digest.item("away/x", size: 70_000))
            #expect(ended.code == NSURLErrorCancelled)
            #expect(app.challenges.map(\.port) == [digest.port, basic.port])
            try await app.answer([FixtureAnswer(.right)])
            #expect(try await app.fetch(digest.item("away/y", size: 70_000)).bytes == 70_000)
            let asked = try await basic.finish()
            #expect(asked.map(\.status) == [401, 401, 401, 200])
            #expect(asked.map(\.isSigned) == [false, false, false, true])
            try await app.end()
            try await digest.stop()
            await server.stop()
        }
    }

    @Test(
        "A delegate that drops the handler leaves it to the extension; a silent one too, and then nobody answers",
        .shows("D47", by: "BADownloadManagerDelegate.download(_:didReceive:completionHandler:)"))
    func silence() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let digest = try await DigestServer.start(on: device)
            var plan = FixturePlan()
            plan.challenges = [FixtureAnswer(.right, isForSession: false), FixtureAnswer(.silence)]
            try await install(plan, on: device, from: server)
            let app = try device.launch()
            try await app.answer([FixtureAnswer(.drop), FixtureAnswer(.silence)])
            #expect(try await app.fetch(digest.item("md5/dropped.pack", size: 10)).bytes == 10)
            #expect(try device.extensionRecords("challenge").map(\.onMainThread) == [true])

            let begun = MonotonicClock.now
            let ended = try await app.fetch(digest.item("md5/silent.pack", size: 10))
            #expect(ended.code == NSURLErrorUserAuthenticationRequired && ended.reason?.contains("nobody") == true)
            let took = MonotonicClock.now - begun
            // The delegate's time and the extension's.
            #expect(took >= .seconds(59) && took < .seconds(80), "\(took)")
            try await device.until("both times are in the journal") {
                try await device.rows("challenge-timed-out").map(\.reason) == ["timeout", "timeout"]
            }
            let asked = try device.extensionRecords("challenge")
            #expect(asked.count == 2, "\(asked)")
            try await app.end()
            try await digest.stop()
            await server.stop()
        }
    }

    @Test("A service killed while a server waits for its answer asks again; meanwhile the listing says why it waits")
    func killed() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let basic = try await BasicServer.start(on: device)
            try await install(FixturePlan(), on: device, from: server)
            let app = try device.launch()
            try await app.answer([FixtureAnswer(.silence), FixtureAnswer(.right)])
            let item = try basic.item("one.pack", size: 100_000)
            #expect(try await app.perform("foreground", item).code == nil)
            try await app.event("challenge")
            let waiting = try #require(try await device.downloads().first)
            #expect(waiting.state == "waiting" && waiting.reason == "challenge")
            #expect(waiting.detail.contains("localhost:\(basic.port)"))
            try await device.kill()
            // The app's manager comes back by itself, with a service that it or we start, and hears the new question.
            try await device.follow()
            let finished = try await app.event("finished")
            #expect(finished.bytes == 100_000)
            #expect(app.challenges.map(\.failures) == [0, 0])
            try device.expectNoSecrets()
            try await app.end()
            _ = try await basic.finish()
            await server.stop()
        }
    }

    @Test("A server without the key that the app pins is not believed; with it, it is", arguments: [true, false])
    func pinned(isRight: Bool) async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let digest = try await DigestServer.start(on: device)
            let script = """
                openssl x509 -in "$1" -pubkey -noout | openssl pkey -pubin -outform der |
                    openssl dgst -sha256 -binary | openssl base64 -A
                """
            let made = try await Program.run("/bin/sh", ["-c", script, "sh", device.folder + "/digest/server.pem"])
            let right = try #require(made.output.first)
            let key = isRight ? right : String(repeating: "A", count: 43) + "="
            let item = digest.item("open/one.pack", size: 5000, essential: true)
            // The manifest comes from an address that is not pinned.
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [item]).encoded())
            var bundle = FixtureBundle(
                manifestURL: manifest.replacingOccurrences(of: "localhost", with: "127.0.0.1"))
            bundle.domains = ["localhost", "127.0.0.1"]
            bundle.overrides["NSAppTransportSecurity"] = [
                "NSPinnedDomains": ["localhost": ["NSPinnedLeafIdentities": [["SPKI-SHA256-BASE64": key]]]]
            ]
            let result = try await device.install(try bundle.write(to: device.folder))
            #expect(result.exit == .exited(0), "\(result.errors)")
            try await device.told(1)
            if isRight {
                #expect(device.asset(item.identifier)?.count == 5000)
            } else {
                let failed = try #require(try device.extensionRecords("failed").first)
                // The code of an untrusted certificate; Foundation's own constant has another number here.
                #expect(failed.domain == NSURLErrorDomain && failed.code == -1202)
                #expect(failed.reason?.contains("NSPinnedDomains") == true)
                #expect(digest.requests.isEmpty)
            }
            try await digest.stop()
            await server.stop()
        }
    }
}
