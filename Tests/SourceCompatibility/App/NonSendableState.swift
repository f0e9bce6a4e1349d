// Handlers of exclusive control that use what is not Sendable: a class without locks, local variables, self.
import BackgroundAssets

/// A parser of no concern to concurrency.
class AssetIndex {
    var entries: [String: Int] = [:]
    func add(_ name: String) { entries[name, default: 0] += 1 }
}

class IndexUpdater {
    let index = AssetIndex()
    var onUpdate: ((Int) -> Void)?

    /// The completion form: the handler is not @Sendable.
    func update(_ names: [String]) {
        let local = AssetIndex()
        // expected-warning@+1 {{'withExclusiveControl' is deprecated}}
        BADownloadManager.shared.withExclusiveControl { acquired, error in
            guard acquired else {
                print("no control: \(String(describing: error))")
                return
            }
            for name in names {
                self.index.add(name)
                local.add(name)
            }
            self.onUpdate?(self.index.entries.count)
        }
    }

    func updateSoon(_ names: [String], before date: Date) {
        // expected-warning@+1 {{is deprecated}}
        BADownloadManager.shared.withExclusiveControl(beforeDate: date) { [weak self] (acquired: Bool, error: Error?) in
            if acquired { names.forEach { self?.index.add($0) } }
            self?.onUpdate?(acquired ? names.count : -1)
        }
    }
}

/// The asynchronous form gives a value that is not Sendable to its caller.
func makeIndex(_ names: [String]) async throws -> AssetIndex {
    try await BADownloadManager.shared.withExclusiveControl {
        let index = AssetIndex()
        names.forEach(index.add)
        return index
    }
}

@MainActor
func countEntries(of updater: IndexUpdater) async throws -> Int {
    let index = AssetIndex()
    try await BADownloadManager.shared.withExclusiveControl {
        index.add("here")
        updater.index.add("here")
    }
    return index.entries.count + updater.index.entries.count
}
