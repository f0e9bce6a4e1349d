import AssetsModel
import AssetsOS
import Testing

@testable import AssetsStore

@Suite("Runs of extensions in the store")
struct ExtensionRowsTests {
    private func app(_ id: String) -> StoreChange {
        let description = AppDescription(
            bundleIdentifier: id, name: id, version: "1", build: "1", bundleFolder: "A.app", executable: "A",
            manifestURL: "https://example.com/",
            restrictions: .init(
                downloadAllowance: 1, essentialDownloadAllowance: nil, allowedDomains: []),
            maxInstallSize: 1, essentialMaxInstallSize: nil, extensionIdentifier: id + ".e", extensionExecutable: "E",
            groups: [], sharedGroups: [])
        return .saveApp(
            AppRecord(description: description, buildFolder: "b", source: .store, gate: .open, installedAt: .zero))
    }

    private func run(_ number: Int, of app: String = "a") -> ExtensionRun {
        ExtensionRun(id: "\(app) \(number)", app: app, launchedAt: .seconds(number))
    }

    @Test("A run is kept as it was, keeps its place when it changes, and the last one comes first")
    func roundTrip() async throws {
        try await inPlace { place in
            let store = try await place.open()
            var first = run(1)
            _ = try await store.apply([app("a"), .saveExtensionRun(first), .saveExtensionRun(run(2))])
            first.endedAt = .microseconds(5_000_001)
            first.calls = 3
            first.runtime = .milliseconds(1500)
            first.memoryPeak = 7 << 20
            first.warnings = [.memory, .size]
            (first.reason, first.detail) = (.memory, "too much")
            _ = try await store.apply([.saveExtensionRun(first)])
            #expect(try await store.extensionRuns(app: "a", limit: 9) == [run(2), first])
            #expect(try await store.openExtensionRuns() == [run(2)])
            #expect(try await store.extensionRuns(app: "b", limit: 9) == [])
            try await store.close()
            let again = try await place.open()
            #expect(try await again.extensionRuns(app: "a", limit: 1) == [run(2)])
            try await again.close()
        }
    }

    @Test("Of each app the last runs are kept, and no more")
    func trimming() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([app("a"), app("b"), .saveExtensionRun(run(0, of: "b"))])
            let count = PolicyNumbers.extensionRunsMax + 20
            _ = try await store.apply((1...count).map { .saveExtensionRun(run($0)) })
            let kept = try await store.extensionRuns(app: "a", limit: 1000)
            #expect(kept.count == PolicyNumbers.extensionRunsMax)
            #expect(kept.first == run(count) && kept.last == run(21))
            #expect(try await store.extensionRuns(app: "b", limit: 9).count == 1)
            try await store.close()
        }
    }

    @Test("What an app used goes with it; of an app that is not installed nothing is kept")
    func removal() async throws {
        try await inPlace { place in
            let store = try await place.open()
            var ledger = RuntimeLedger()
            ledger.charge(.seconds(7), at: .seconds(1_800_000_000))
            let late: [StoreChange] = [.saveExtensionRun(run(2)), .saveRuntime(app: "a", ledger)]
            _ = try await store.apply([app("a"), .saveExtensionRun(run(1)), .saveRuntime(app: "a", ledger)])
            #expect(try await store.runtimes() == ["a": ledger])
            _ = try await store.apply([.removeApp("a")] + late)
            _ = try await store.apply([app("a")])
            #expect(try await store.runtimes() == [:])
            #expect(try await store.extensionRuns(app: "a", limit: 9) == [])
            try await store.close()
        }
    }

    @Test("A ledger that cannot be read is an empty one")
    func damagedLedger() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([app("a"), .saveRuntime(app: "a", RuntimeLedger())])
            try await store.close()
            do {
                let connection = try Connection(path: place.path, vfs: nil)
                try connection.execute("UPDATE extensionRuntimes SET ledger = '{\"uses\": 7}'")
            }
            let again = try await place.open()
            #expect(try await again.runtimes() == ["a": RuntimeLedger()])
            try await again.close()
        }
    }
}
