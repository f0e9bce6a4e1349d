// Opening: new, older, newer, foreign and damaged databases, kills, and the write-ahead log.
import AssetsModel
import AssetsOS
import Testing

@testable import AssetsStore

@Suite("Opening")
struct OpeningTests {
    @Test("The store works on its own loop, from its first call on")
    func executor() async throws {
        try await inPlace { place in
            // The initialiser itself checks that it runs there.
            let store = try await place.open()
            #expect(await store.isOn(place.loop))
        }
    }

    @Test("What was applied is there after a kill, and a second kill")
    func kill() async throws {
        try await inPlace { place in
            var store: Store? = try await place.open()
            _ = try await store?.apply([.insertDownload(makeDownload("a"))])
            store = nil
            store = try await place.open()
            _ = try await store?.apply([.insertDownload(makeDownload("b"))])
            let copy = try await Store(path: try place.copy(to: "killed"), on: place.loop)
            #expect(try await copy.downloads(limit: 9).map(\.request.identifier) == ["a", "b"])
            #expect(try await copy.apply([.insertDownload(makeDownload("c"))]).sequences == [3])
        }
    }

    @Test("A log that was torn at any page loses whole transactions from its end")
    func tornLog() async throws {
        try await inPlace { place in
            let store = try await place.open()
            try await store.checkpoint(.truncate)
            for number in 1...8 {
                _ = try await store.apply(
                    [.insertDownload(makeDownload("\(number)"))], journal: [makeEntry("\(number)")])
            }
            let log = try place.contents(place.path + "-wal")
            let database = try place.contents(place.path)
            var counts: Set<Int> = []
            for length in Array(stride(from: 0, to: log.count, by: 2048)) + [log.count] {
                let path = place.directory + "/torn"
                try place.write(database, to: path)
                try place.write(Array(log[..<length]), to: path + "-wal")
                let torn = try await Store(path: path, on: place.loop)
                let count = try await torn.downloads(limit: 9).count
                #expect(try await torn.journal(limit: 9).count == count)
                #expect(await torn.damagedCopy == nil)
                counts.insert(count)
            }
            #expect(counts == Set(0...8))
        }
    }

    @Test("A second store on the same database is refused as busy")
    func busy() async throws {
        try await inPlace { place in
            let store = try await place.open()
            let error = await #expect(throws: StoreError.self) { try await place.open() }
            #expect(error?.code == .busy)
            try await store.close()
            _ = try await place.open()
        }
    }

    @Test("A missing folder is an I/O error")
    func missingFolder() async throws {
        try await inPlace { place in
            let error = await #expect(throws: StoreError.self) {
                try await Store(path: place.directory + "/none/device.sqlite", on: place.loop)
            }
            #expect(error?.code == .io)
        }
    }

    @Test("An older database gets the missing steps and keeps its rows")
    func migration() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([.insertDownload(makeDownload("a"))])
            try await store.close()
            let longer = Schema(
                steps: Schema.current.steps + [
                    "ALTER TABLE apps ADD COLUMN color TEXT", "CREATE TABLE more(x INTEGER) STRICT",
                ])
            let migrated = try await Store(path: place.path, vfs: nil, on: place.loop, schema: longer)
            #expect(try await migrated.downloads(limit: 9).count == 1)
            try await migrated.close()
            let connection = try Connection(path: place.path, vfs: nil)
            #expect(try connection.number("PRAGMA user_version") == Int64(longer.steps.count))
            #expect(try connection.number("SELECT count(*) FROM pragma_table_info('apps') WHERE name = 'color'") == 1)
        }
    }

    @Test("A download of the first schema has no digests, and gets them")
    func digestsOfOldRows() async throws {
        try await inPlace { place in
            let first = Schema(steps: Array(Schema.current.steps.prefix(1)))
            let old = try Connection(path: place.path, vfs: nil)
            try first.migrate(old)
            try old.execute(
                """
                INSERT INTO downloads(sequence, id, app, identifier, url, method, appGroup, isEssential, size, priority, \
                kind, transferClass, state, attempts, failures, reason, detail, etag, total, syncedOffset, storageEpoch, \
                received) VALUES (1, 'i', 'a', 'n', 'u', 'GET', 'g', 0, 0, 0, 'url', 0, 0, 0, 0, '', '', '"t"', 9, 5, 'e', 5)
                """)
            let store = try await place.open()
            var record = try #require(try await store.download(id: "i"))
            #expect(record.request.sha256 == nil)
            let resume = ResumePoint(etag: "\"t\"", lastModified: nil, total: 9, syncedOffset: 5, storageEpoch: "e")
            #expect(record.resume == resume)
            record.resume?.isSecondTry = true
            _ = try await store.apply([.setDownloadResume(id: "i", record.resume, received: 5)])
            #expect(try await store.download(id: "i") == record)
        }
    }

    @Test("A queue of the first schema keeps its order, and its downloads can step back")
    func places() async throws {
        try await inPlace { place in
            let first = Schema(steps: [Schema.current.steps[0]])
            do {
                let connection = try Connection(path: place.path, vfs: nil)
                try first.migrate(connection)
                for number in 1...3 {
                    try connection.execute(
                        """
                        INSERT INTO downloads(sequence, id, app, identifier, url, method, appGroup, isEssential, size, \
                        priority, kind, transferClass, state, attempts, failures, reason, detail, received) VALUES \
                        (\(number), 'id \(number)', 'a', '\(number)', 'https://example.com/', 'GET', 'g', 0, 0, 0, \
                        'url', 0, 0, 0, 0, 'none', '', 0)
                        """)
                }
            }
            let store = try await place.open()
            _ = try await store.apply([.stepBack(id: "id 1")])
            let queue = try await store.queue(.background, app: "a", at: .zero, limit: 9)
            #expect(queue.map(\.id) == ["id 2", "id 3", "id 1"])
        }
    }

    @Test("A step that fails leaves the database at the step before, and the next try goes on from there")
    func failingMigration() async throws {
        try await inPlace { place in
            let bad = Schema(steps: Schema.current.steps + ["CREATE TABLE half(x); INSERT INTO nowhere VALUES (1)"])
            await #expect(throws: StoreError.self) {
                try await Store(path: place.path, vfs: nil, on: place.loop, schema: bad)
            }
            do {
                let connection = try Connection(path: place.path, vfs: nil)
                #expect(try connection.number("PRAGMA user_version") == Int64(Schema.current.steps.count))
                #expect(try connection.number("SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == 0)
            }
            _ = try await place.open()
        }
    }

    @Test("A newer database and one of another program are refused and not touched")
    func refused() async throws {
        try await inPlace { place in
            let theirs = try await refusal(in: place, after: "CREATE TABLE theirs(x)")
            #expect(theirs == .foreign)
            let marked = try await refusal(in: place, after: "DROP TABLE theirs; PRAGMA application_id = 1")
            #expect(marked == .foreign)
            let sql = "PRAGMA application_id = \(Schema.applicationID); PRAGMA user_version = 99"
            let newer = try await refusal(in: place, after: sql)
            #expect(newer == .newerSchema)
        }
    }

    /// The code with which a database is refused on which somebody else ran `sql`, if it was not touched.
    private func refusal(in place: Place, after sql: String) async throws -> StoreError.Code? {
        try Connection(path: place.path, vfs: nil).execute(sql)
        let before = try place.contents(place.path)
        let error = await #expect(throws: StoreError.self) { try await place.open() }
        #expect(try place.contents(place.path) == before)
        return error?.code
    }

    @Test("A damaged database is set aside with its log, and a new one begins")
    func damaged() async throws {
        try await inPlace { place in
            var store: Store? = try await place.open()
            _ = try await store?.apply((0..<200).map { .insertDownload(makeDownload("\($0)")) })
            try await store?.checkpoint(.passive)
            store = nil
            let log = try place.contents(place.path + "-wal")
            var bytes = try place.contents(place.path)
            // Every page but the first becomes nonsense.
            for index in stride(from: 4096, to: bytes.count, by: 64) { bytes[index] = 0xEE }
            try place.write(bytes, to: place.path)

            // With its log intact the pages in the log would hide the damage, so this log tells of other pages only.
            try place.write(Array(log[..<32]), to: place.path + "-wal")
            let second = try await place.open()
            #expect(await second.damagedCopy == place.path + ".damaged-1")
            #expect(try place.contents(place.path + ".damaged-1") == bytes)
            #expect(place.exists("device.sqlite.damaged-1-wal"))
            #expect(try await second.downloads(limit: 9).isEmpty)
            _ = try await second.apply([.insertDownload(makeDownload("new"))])

            // Found while running: the service moves it aside itself, and earlier copies stay.
            #expect(try await second.setAside() == place.path + ".damaged-2")
            let third = try await place.open()
            #expect(await third.damagedCopy == nil)
            #expect(try await third.downloads(limit: 9).isEmpty)
            #expect(try place.contents(place.path + ".damaged-1") == bytes)
        }
    }

    @Test("A file that is no database at all is set aside")
    func noDatabase() async throws {
        try await inPlace { place in
            try place.write(Array("This is not a database, but a letter.".utf8), to: place.path)
            let store = try await place.open()
            #expect(await store.damagedCopy == place.path + ".damaged-1")
            #expect(try place.contents(place.path + ".damaged-1").count == 37)
        }
    }

    @Test("The log is written back beyond its limit, and cut to nothing when asked")
    func logLimit() async throws {
        try await inPlace { place in
            let store = try await place.open()
            var record = makeDownload("a")
            record.request.body = Array(repeating: 1, count: 1 << 20)
            var largest = 0
            for number in 0..<64 {
                record.request.identifier = "\(number)"
                record.request.uniqueIdentifier = "\(number)"
                _ = try await store.apply([.insertDownload(record)])
                largest = max(largest, try await store.logSize())
            }
            #expect(largest > 8 << 20)
            #expect(largest <= Store.logSizeMax)
            #expect(try place.contents(place.path + "-wal").count < Store.logSizeMax + (2 << 20))
            try await store.checkpoint(.truncate)
            #expect(try place.contents(place.path + "-wal").isEmpty)
            #expect(try await store.logSize() == 0)
            #expect(try await store.downloads(limit: 100).count == 64)
        }
    }
}

extension Store {
    /// Whether the store's own code runs on `loop`.
    fileprivate func isOn(_ loop: EventLoop) -> Bool { loop.isOnLoop }
}
