// Exclusive control from everywhere: the main actor, an actor, no isolation, tasks, and with results of all kinds.
import BackgroundAssets

@MainActor
final class Screen {
    var rows = 0
    private let manager = BADownloadManager.shared

    func refresh() async throws -> Int {
        try await manager.withExclusiveControl {
            self.rows += 1
        }
        return try await manager.withExclusiveControl(before: Date(timeIntervalSinceNow: 5)) { [weak self] in
            self?.rows += 1
            return self?.rows ?? 0
        }
    }

    func refreshLater(_ done: @escaping @MainActor (Result<Int, any Error>) -> Void) {
        Task {
            do {
                let count = try await manager.withExclusiveControl { try self.manager.fetchCurrentDownloads().count }
                rows = count
                done(.success(count))
            } catch {
                done(.failure(error))
            }
        }
    }
}

actor Catalogue {
    private var names: [String] = []

    func reload(from file: URL) async throws -> [String] {
        names = try await BADownloadManager.shared.withExclusiveControl {
            try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        }
        try await BADownloadManager.shared.withExclusiveControl {
            self.names.sort()
        }
        return names
    }
}

enum Janitor {
    /// Deletes what no download needs, while nobody else looks.
    static func clean(_ folder: URL) async throws -> [String] {
        try await BADownloadManager.shared.withExclusiveControl {
            let needed = Set(try BADownloadManager.shared.fetchCurrentDownloads().map(\.identifier))
            let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            let unneeded = files.filter { !needed.contains($0.lastPathComponent) }
            for file in unneeded { try FileManager.default.removeItem(at: file) }
            return unneeded.map(\.lastPathComponent).sorted()
        }
    }

    static func cleanDetached(_ folder: URL) -> Task<Int, any Error> {
        Task.detached(priority: .utility) {
            try await BADownloadManager.shared.withExclusiveControl { folder.path.count }
        }
    }

    static func cleanAll(_ folders: [URL]) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for folder in folders {
                group.addTask { try await BADownloadManager.shared.withExclusiveControl { folder.path.count } }
            }
            var sum = 0
            for try await count in group { sum += count }
            return sum
        }
    }

    struct Stop: Error {}

    static func failing() async -> Bool {
        do {
            try await BADownloadManager.shared.withExclusiveControl { throw Stop() }
            return false
        } catch is Stop {
            return true
        } catch {
            return false
        }
    }
}
