// Lists and the queue: order, pages, what is left out.
import AssetsModel
import AssetsOS
import Testing

@testable import AssetsStore

@Suite("Queue")
struct QueueTests {
    @Test("An app's queue goes by priority, then by place, and knows which apps have one")
    func order() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([
                .insertDownload(makeDownload("1", unique: "1", app: "b", priority: 0)),
                .insertDownload(makeDownload("2", unique: "2", app: "a", priority: 0)),
                .insertDownload(makeDownload("3", unique: "3", app: "b", priority: 5)),
                .insertDownload(makeDownload("4", unique: "4", app: "b", priority: -5)),
                .insertDownload(makeDownload("5", unique: "5", app: "b", priority: 5)),
                .insertDownload(makeDownload("6", unique: "6", app: "b", priority: 9, class: .foreground)),
                .insertDownload(makeDownload("7", unique: "7", app: "b", priority: 5)),
            ])
            func queue(_ app: String = "b", limit: Int = 64) async throws -> [String] {
                try await store.queue(.background, app: app, at: .zero, limit: limit).map(\.id)
            }
            #expect(try await queue() == ["3", "5", "7", "1", "4"])
            #expect(try await queue(limit: 2) == ["3", "5"])
            #expect(try await queue("a") == ["2"])
            #expect(try await queue("c") == [])
            #expect(try await queue(limit: -1) == [])
            #expect(try await store.queue(.foreground, app: "b", at: .zero, limit: 9).map(\.id) == ["6"])
            #expect(try await store.queuedApps(.background) == ["a", "b"])
            #expect(try await store.queuedApps(.foreground) == ["b"])
            #expect(try await store.queuedApps(.essential) == [])
            // Who steps back goes behind all of its priority, and before those that come later.
            _ = try await store.apply([.stepBack(id: "3")])
            _ = try await store.apply([
                .insertDownload(makeDownload("8", unique: "8", app: "b", priority: 5)), .stepBack(id: "5"),
            ])
            #expect(try await queue() == ["7", "3", "8", "5", "1", "4"])
            let copy = try await Store(path: try place.copy(to: "killed"), on: place.loop)
            #expect(
                try await copy.queue(.background, app: "b", at: .zero, limit: 3).map(\.id) == ["7", "3", "8"])
            await #expect(throws: StoreError.self) { try await store.apply([.stepBack(id: "none")]) }
        }
    }

    @Test("What is still to come of a file is told where its size is known")
    func remaining() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let point = ResumePoint(etag: "e", lastModified: nil, total: 70, syncedOffset: 10, storageEpoch: "x")
            _ = try await store.apply([
                .insertDownload(makeDownload("1", unique: "unknown")),
                .insertDownload(makeDownload("2", unique: "announced", size: 50)),
                .insertDownload(makeDownload("3", unique: "begun")),
                .setDownloadResume(id: "begun", point, received: 20),
                .setDownloadResume(id: "announced", nil, received: 60),
            ])
            let entries = try await store.queue(.background, app: "org.example.app", at: .zero, limit: 9)
            #expect(entries.map(\.remaining) == [nil, 0, 50])
            #expect(entries.map(\.id) == ["unknown", "announced", "begun"])
            let records = try await store.liveDownloads(limit: 9)
            #expect(records.map(\.queueEntry) == entries)
        }
    }

    @Test("What ended, finishes or waits for a later time is not in the queue")
    func leftOut() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let intent = FinishIntent(target: "t", inode: 1, length: 1)
            _ = try await store.apply([
                .insertDownload(makeDownload("now", unique: "now")),
                .insertDownload(makeDownload("later", unique: "later", notBefore: .seconds(20))),
                .insertDownload(makeDownload("latest", unique: "latest", notBefore: .seconds(30))),
                .insertDownload(makeDownload("due", unique: "due", notBefore: .seconds(10))),
                .insertDownload(makeDownload("f", unique: "finishing")),
                .insertDownload(makeDownload("d", unique: "done")),
                .setDownloadState(id: "finishing", .finishing(intent)),
                .setDownloadState(id: "done", .finished(intent)),
            ])
            func queue() async throws -> [String] {
                try await store.queue(.background, app: "org.example.app", at: .seconds(10), limit: 9).map(\.id)
            }
            #expect(try await queue() == ["now", "due"])
            #expect(try await store.earliestNotBefore(.background, after: .seconds(10)) == .seconds(20))
            #expect(try await store.earliestNotBefore(.background, after: .seconds(20)) == .seconds(30))
            #expect(try await store.earliestNotBefore(.background, after: .seconds(30)) == nil)
            #expect(try await store.earliestNotBefore(.foreground, after: .zero) == nil)
            _ = try await store.apply([
                .setDownloadWait(
                    id: "later", notBefore: nil, reason: .none, detail: "", retry: RetryHistory(), attempts: 0)
            ])
            #expect(try await queue() == ["now", "later", "due"])
            #expect(
                try await store.liveDownloads(limit: 9).map(\.id) == ["now", "later", "latest", "due", "finishing"])
            #expect(try await store.messages(limit: 9).map(\.id) == ["done"])
        }
    }

    @Test("The queue is read through its index, without a sort, however much others have queued")
    func plans() async throws {
        try await inPlace { place in
            try await place.open().close()
            let connection = try Connection(path: place.path, vfs: nil)
            for query in [Query.queueOfApp, .nextQueuedApp, .earliestNotBefore, .counts] {
                let statement = try connection.prepare("EXPLAIN QUERY PLAN " + query.sql)
                var plan: [String] = []
                while try statement.step() { plan.append(statement.text(at: 3)) }
                let index = query == .earliestNotBefore ? "delayed" : "queue"
                #expect(plan.contains { $0.hasPrefix("SEARCH downloads USING") && $0.contains("INDEX \(index) ") })
                #expect(!plan.contains { $0.contains("SCAN") || $0.contains("TEMP B-TREE") }, "\(query): \(plan)")
            }
        }
    }

    @Test("Pages join without a gap, for one app and for all")
    func pages() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let failure = DownloadRecord.State.failed(DownloadFailure(domain: .url, code: 1, reason: ""))
            var changes: [StoreChange] = []
            for number in 1...40 {
                let app = number % 2 == 0 ? "even" : "odd"
                changes.append(.insertDownload(makeDownload("\(number)", unique: "\(number)", app: app)))
                if number % 3 == 0 { changes.append(.setDownloadState(id: "\(number)", failure)) }
            }
            _ = try await store.apply(changes)
            func all(_ page: (Int64) async throws -> [DownloadRecord]) async throws -> [Int64] {
                var found: [Int64] = []
                while true {
                    let records = try await page(found.last ?? 0)
                    if records.isEmpty { return found }
                    found += records.map(\.sequence)
                }
            }
            let numbers = Array(Int64(1)...40)
            let even = numbers.filter { $0 % 2 == 0 }
            #expect(try await all { try await store.downloads(after: $0, limit: 7) } == numbers)
            #expect(try await all { try await store.downloads(app: "even", after: $0, limit: 7) } == even)
            #expect(
                try await all { try await store.liveDownloads(app: "even", after: $0, limit: 7) }
                    == even.filter { $0 % 3 != 0 })
            #expect(
                try await all { try await store.messages(app: "even", after: $0, limit: 2) }
                    == even.filter { $0 % 3 == 0 })
            #expect(
                try await all { try await store.liveDownloads(after: $0, limit: 7) } == numbers.filter { $0 % 3 != 0 })
            #expect(try await all { try await store.messages(after: $0, limit: 7) } == numbers.filter { $0 % 3 == 0 })
            #expect(try await store.downloads(app: "nobody", limit: 7).isEmpty)
        }
    }

    @Test("Counts hold live downloads of the class, and sizes that apps made up do not overflow")
    func counts() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([
                .insertDownload(makeDownload("1", unique: "1", size: 10, class: .essential)),
                .insertDownload(makeDownload("2", unique: "2", size: 30, class: .essential)),
                .insertDownload(makeDownload("3", unique: "3", size: 500, class: .essential)),
                .insertDownload(makeDownload("4", unique: "4", size: .max)),
                .insertDownload(makeDownload("5", unique: "5", size: .max)),
                .setDownloadState(id: "2", .finishing(FinishIntent(target: "t", inode: 1, length: 30))),
                .setDownloadState(id: "3", .finished(FinishIntent(target: "t", inode: 1, length: 30))),
            ])
            let app = "org.example.app"
            #expect(try await store.counts(app: app, .essential) == DownloadCounts(count: 2, size: 40))
            #expect(try await store.counts(app: app, .background) == DownloadCounts(count: 2, size: .max))
            #expect(try await store.counts(app: app, .foreground) == DownloadCounts())
        }
    }

    @Test("Journal rows come by number, of one app or of all")
    func journal() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let entries = (1...9).map { makeEntry("\($0)", app: $0 % 3 == 0 ? "third" : "other") }
            let result = try await store.apply([], journal: entries)
            #expect(result.journalNumbers == Array(1...9))
            let rows = zip(1..., entries).map { JournalRow(number: Int64($0), entry: $1) }
            #expect(try await store.journal(limit: 100) == rows)
            #expect(try await store.journal(after: 4, limit: 2) == Array(rows[4..<6]))
            #expect(try await store.journal(app: "third", limit: 2) == [rows[2], rows[5]])
            #expect(try await store.journal(app: "third", after: 6, limit: 9) == [rows[8]])
        }
    }

    @Test("The journal stays within its limits, whether or not the service is ever idle")
    func journalLimit() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let batch = Array(repeating: makeEntry("x"), count: 11_000)
            for _ in 0..<10 { _ = try await store.apply([], journal: batch) }
            // The tenth went beyond limit and slack by nothing; the eleventh does.
            #expect(try await store.journal(limit: 1).first?.number == 1)
            let last = try await store.apply([], journal: [makeEntry("last")])
            #expect(last.journalNumbers == [110_001])
            #expect(try await store.journal(limit: 1).first?.number == 1001)
            var batches = 0
            while try await store.trimJournal() { batches += 1 }
            #expect(batches == 9)
            #expect(try await store.journal(limit: 1).first?.number == 10_002)
            #expect(try await store.trimJournal() == false)
            // Numbers go on after a kill.
            let copy = try await Store(path: try place.copy(to: "killed"), on: place.loop)
            #expect(try await copy.apply([], journal: [makeEntry("after")]).journalNumbers == [110_002])
        }
    }
}
