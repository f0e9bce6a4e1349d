// What goes into the store comes out again, in the order that was promised, wholly or not at all.
import AssetsModel
import AssetsOS
import Testing

@testable import AssetsStore

@Suite("Store")
struct StoreTests {
    static let app = "org.example.app"

    @Test(
        "A download comes back as it was, in every state",
        arguments: [
            DownloadRecord.State.waiting,
            .finishing(
                FinishIntent(
                    target: "Containers/Group/g/x", inode: .max, length: 9,
                    digest: ContentDigest(.sha512, Array(0..<64)))),
            .finished(FinishIntent(target: "Containers/Group/g/x", inode: 7, length: 0)),
            .failed(DownloadFailure(domain: .url, code: -1009, reason: "offline")),
        ])
    func roundTrip(state: DownloadRecord.State) async throws {
        try await inPlace { place in
            let store = try await place.open()
            var record = makeFullDownload(state: state)
            record.queued(as: try #require(try await store.apply([.insertDownload(record)]).sequences.first))
            try await store.close()
            let second = try await place.open()
            #expect(try await second.download(id: record.id) == record)
            #expect(try await second.downloads(limit: 9) == [record])
        }
    }

    @Test("Plans and events come back as they were, and go with their app")
    func occasions() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let plan = PeriodicPlan(lastUse: .seconds(1), lastCheck: .seconds(2), due: .microseconds(3_000_001))
            let events = [
                ContentEvent(app: Self.app, request: .update, origin: .simulated, manifest: "one"),
                ContentEvent(app: "other", request: .periodic, origin: .planned, manifest: "two"),
            ]
            _ = try await store.apply(
                [.savePlan(app: Self.app, plan), .savePlan(app: "other", plan)] + events.map { .openEvent($0) })
            // One at a time.
            await #expect(throws: StoreError.self) { _ = try await store.apply([.openEvent(events[0])]) }
            try await store.close()
            let second = try await place.open()
            #expect(try await second.plans() == [Self.app: plan, "other": plan])
            #expect(try await second.events() == [Self.app: events[0], "other": events[1]])
            _ = try await second.apply([.removeApp(Self.app), .closeEvent(app: "other")])
            #expect(try await second.plans() == ["other": plan])
            #expect(try await second.events() == [:])
        }
    }

    @Test("Deaths in its callback are kept with a message, and with nothing else")
    func deaths() async throws {
        try await inPlace { place in
            let store = try await place.open()
            var record = makeDownload("a")
            record.queued(as: try await store.apply([.insertDownload(record)]).sequences[0])
            let change = StoreChange.setMessageWait(id: record.id, deaths: 3, notBefore: .seconds(8), detail: "died")
            await #expect(throws: StoreError.self) { _ = try await store.apply([change]) }
            record.state = .finished(FinishIntent(target: "t", inode: 1, length: 2))
            _ = try await store.apply([.setDownloadState(id: record.id, record.state), change])
            (record.deaths, record.notBefore, record.detail) = (3, .seconds(8), "died")
            #expect(try await store.download(id: record.id) == record)
            #expect(try await store.messages(limit: 2) == [record])
        }
    }

    @Test("Each change of a download changes what it names and nothing else")
    func updates() async throws {
        try await inPlace { place in
            let store = try await place.open()
            var record = makeDownload("a")
            record.queued(as: try await store.apply([.insertDownload(record)]).sequences[0])
            let id = record.id
            let resume = ResumePoint(etag: nil, lastModified: "x", total: 0, syncedOffset: 5, storageEpoch: "")
            let retry = RetryHistory(failures: 4, firstFailure: .seconds(3))
            let intent = FinishIntent(target: "t", inode: 1, length: 2)

            _ = try await store.apply([.setDownloadClass(id: id, .foreground)])
            record.transferClass = .foreground
            #expect(try await store.download(id: id) == record)
            _ = try await store.apply([
                .setDownloadWait(
                    id: id, notBefore: .seconds(9), reason: .offline, detail: "no route", retry: retry, attempts: 5)
            ])
            record.notBefore = .seconds(9)
            (record.reason, record.detail, record.retry, record.attempts) = (.offline, "no route", retry, 5)
            #expect(try await store.download(id: id) == record)
            _ = try await store.apply([.setDownloadResume(id: id, resume, received: 6)])
            (record.resume, record.received) = (resume, 6)
            #expect(try await store.download(id: id) == record)
            _ = try await store.apply([.setDownloadState(id: id, .finishing(intent))])
            record.state = .finishing(intent)
            #expect(try await store.download(id: id) == record)
            _ = try await store.apply([
                .setDownloadState(id: id, .failed(DownloadFailure(domain: .assets, code: 204, reason: "r")))
            ])
            record.state = .failed(DownloadFailure(domain: .assets, code: 204, reason: "r"))
            #expect(try await store.download(id: id) == record)
            _ = try await store.apply([
                .setDownloadResume(id: id, nil, received: 0), .setDownloadState(id: id, .waiting),
            ])
            (record.resume, record.received, record.state) = (nil, 0, .waiting)
            #expect(try await store.download(id: id) == record)
            _ = try await store.apply([.removeDownload(id: id), .removeDownload(id: id)])
            #expect(try await store.download(id: id) == nil)
        }
    }

    @Test("Apps, installations, settings and intents come back after a kill")
    func otherRecords() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let app = makeApp()
            var launched = makeApp("org.example.zebra")
            (launched.gate, launched.launchedAt, launched.source) = (.open, .seconds(8), .sideload)
            let failed = InstallationRecord(
                id: "I2", source: "https://example.com/a.zip", kind: .store, phase: .failed, app: "a", buildFolder: "b",
                startedAt: .seconds(1), error: AssetsError(.archiveInvalid, "broken", remedy: "build it again"))
            let running = InstallationRecord(
                id: "I1", source: "/a.app", kind: .sideload, phase: .unpacking, buildFolder: "", startedAt: .seconds(2))
            _ = try await store.apply([
                .saveApp(launched), .saveApp(app), .saveInstallation(running), .saveInstallation(failed),
                .setSetting(name: "developer-mode", value: "on"), .setSetting(name: "gone", value: "x"),
                .setSetting(name: "gone", value: nil), .openIntent(id: "z", kind: "finish", payload: "{}"),
                .openIntent(id: "a", kind: "purge", payload: ""), .openIntent(id: "m", kind: "purge", payload: ""),
                .closeIntent(id: "a"), .closeIntent(id: "never"),
            ])
            let copy = try await Store(path: try place.copy(to: "killed"), on: place.loop)
            #expect(try await copy.apps() == [app, launched])
            #expect(try await copy.app(app.id) == app)
            #expect(try await copy.app("org.example") == nil)
            #expect(try await copy.installations() == [failed, running])
            #expect(try await copy.settings() == ["developer-mode": "on"])
            #expect(
                try await copy.intents() == [
                    IntentRecord(id: "z", kind: "finish", payload: "{}"),
                    IntentRecord(id: "m", kind: "purge", payload: ""),
                ])
            #expect(await copy.damagedCopy == nil)
        }
    }

    @Test("Removing an app or an installation removes its downloads and nobody else's")
    func removal() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let done = DownloadRecord.State.finished(FinishIntent(target: "t", inode: 1, length: 1))
            _ = try await store.apply([
                .saveApp(makeApp()), .insertDownload(makeDownload("a")), .insertDownload(makeDownload("b")),
                .setDownloadState(id: "\(Self.app)/b", done), .insertDownload(makeDownload("archive", app: "I1")),
                .insertDownload(makeDownload("other", app: "org.example.app2")),
            ])
            _ = try await store.apply([.removeApp(Self.app), .removeInstallation("I1")])
            #expect(try await store.apps().isEmpty)
            #expect(try await store.downloads(limit: 9).map(\.app) == ["org.example.app2"])
        }
    }

    @Test("A second live download of an app and identifier is refused by name")
    func uniqueness() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([.insertDownload(makeDownload("a", unique: "U1"))])
            let error = await #expect(throws: StoreError.self) {
                try await store.apply([.insertDownload(makeDownload("a", unique: "U2"))])
            }
            #expect(error?.code == .duplicate)
            #expect(error?.description.contains("download a (U2) of org.example.app") == true)
            // Another app may use it; so may the same app once the first one ended.
            _ = try await store.apply([.insertDownload(makeDownload("a", unique: "U3", app: "org.example.b"))])
            let failure = DownloadRecord.State.failed(DownloadFailure(domain: .url, code: -1, reason: ""))
            _ = try await store.apply([
                .setDownloadState(id: "U1", failure), .insertDownload(makeDownload("a", unique: "U2")),
            ])
            #expect(try await store.download(app: Self.app, identifier: "a")?.id == "U2")
            // An ended one that comes back to life meets the same rule.
            let revived = await #expect(throws: StoreError.self) {
                try await store.apply([.setDownloadState(id: "U1", .waiting)])
            }
            #expect(revived?.code == .duplicate)
            // A unique identifier is taken also by an ended download.
            let reused = await #expect(throws: StoreError.self) {
                try await store.apply([.insertDownload(makeDownload("c", unique: "U1"))])
            }
            #expect(reused?.code == .duplicate)
        }
    }

    @Test("A transaction with one bad change does nothing")
    func allOrNothing() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([.insertDownload(makeDownload("a"))], journal: [makeEntry("1")])
            let error = await #expect(throws: StoreError.self) {
                try await store.apply(
                    [
                        .insertDownload(makeDownload("b")), .saveApp(makeApp()), .setSetting(name: "n", value: "v"),
                        .setDownloadClass(id: "nobody", .foreground),
                    ], journal: [makeEntry("2")])
            }
            #expect(error?.code == .missing)
            #expect(error?.context.contains("nobody") == true)
            #expect(try await store.downloads(limit: 9).map(\.request.identifier) == ["a"])
            #expect(try await store.apps().isEmpty)
            #expect(try await store.settings().isEmpty)
            // The next one takes the numbers that were not used.
            let result = try await store.apply([.insertDownload(makeDownload("c"))], journal: [makeEntry("3")])
            #expect(result == ApplyResult(sequences: [2], journalNumbers: [2]))
        }
    }

    @Test("Sequences are not used again within a run although the last download was removed")
    func sequences() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let first = try await store.apply([.insertDownload(makeDownload("a")), .insertDownload(makeDownload("b"))])
            _ = try await store.apply([.removeDownload(id: "\(Self.app)/b")])
            let second = try await store.apply([.insertDownload(makeDownload("c"))])
            #expect(first.sequences == [1, 2])
            #expect(second.sequences == [3])
            #expect(try await store.apply([]) == ApplyResult())
        }
    }

    @Test("A row above the limit is refused, one of a megabyte is kept")
    func rowLimit() async throws {
        try await inPlace { place in
            let store = try await place.open()
            var record = makeDownload("a")
            record.request.body = Array(repeating: 7, count: 1 << 20)
            record.queued(as: 1)
            _ = try await store.apply([.insertDownload(record)])
            #expect(try await store.download(id: record.id) == record)
            var huge = makeDownload("b")
            huge.request.body = Array(repeating: 7, count: Store.rowSizeMax + 1)
            let error = await #expect(throws: StoreError.self) { try await store.apply([.insertDownload(huge)]) }
            #expect(error?.code == .invalid)
            #expect(try await store.downloads(limit: 9).count == 1)
        }
    }

    @Test("A closed store refuses everything")
    func closed() async throws {
        try await inPlace { place in
            let store = try await place.open()
            try await store.close()
            try await store.close()
            let error = await #expect(throws: StoreError.self) { try await store.apps() }
            #expect(error?.code == .closed)
        }
    }
}
