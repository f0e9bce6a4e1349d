// Exclusive control in the sample app, and what is done in it.
import BackgroundAssets
import Dispatch
import FixturePlan
import Foundation
import Glibc
import Synchronization

extension Driver {
    func performControl(_ verb: String, _ argument: String, _ reply: inout FixtureRecord) throws -> Bool {
        switch verb {
        case "acquire": acquire(before: nil)
        case "acquire-before": acquire(before: Double(argument).map { $0 / 1000 })
        case "release": releases.signal()
        case "obtain": obtain(try item(argument))
        case "async": reply = awaiting(reply) { [manager] in try await Self.enter(manager, argument, &$0) }
        case "async-before":
            let date = Date(timeIntervalSinceNow: (Double(argument) ?? 0) / 1000)
            reply = awaiting(reply) { [manager] in
                $0.value = String(try await manager.withExclusiveControl(before: date) { 42 })
            }
        case "enter":
            let container = container
            let count = Int(argument) ?? 0
            reply = awaiting(reply) { [manager] _ in
                for number in 0..<count {
                    try await manager.withExclusiveControl {
                        if number == 0 {
                            Output.write(FixtureRecord("entering"))
                            passTurnstile(in: container)
                        }
                        append(line: "in \(getpid())", to: FixtureName.entries, in: container)
                        append(line: "out \(getpid())", to: FixtureName.entries, in: container)
                    }
                }
            }
        default: return false
        }
        return true
    }

    private nonisolated(nonsending) static func enter(
        _ manager: BADownloadManager, _ kind: String, _ record: inout FixtureRecord
    ) async throws {
        if kind == "error" {
            try await manager.withExclusiveControl { throw CocoaError(.featureUnsupported) }
        } else {
            record.value = String(try await manager.withExclusiveControl { 42 })
        }
    }

    /// Says when it has control, looks at the downloads, holds it until "release" where there is no date, and looks again.
    private func acquire(before limit: Double?) {
        let (manager, releases) = (manager, releases)
        let begin = ContinuousClock.now
        let handler = { (isAcquired: Bool, error: (any Error)?) in
            var record = FixtureRecord("control")
            record.acquired = isAcquired
            record.elapsed = Int((ContinuousClock.now - begin) / .milliseconds(1))
            record.onMainThread = Thread.isMainThread
            if let error { record.note(error) }
            if isAcquired { record.downloads = try? manager.fetchCurrentDownloads().map(\.listed) }
            Output.write(record)
            guard isAcquired, limit == nil else { return }
            releases.wait()
            record.event = "released"
            record.downloads = try? manager.fetchCurrentDownloads().map(\.listed)
            Output.write(record)
        }
        if let limit {
            manager.withExclusiveControl(beforeDate: Date(timeIntervalSinceNow: limit), perform: handler)
        } else {
            manager.withExclusiveControl(handler)
        }
    }

    /// Starts what is queued already in the foreground, or the download anew.
    private func obtain(_ item: FixturePlan.Item) {
        let manager = manager
        let group = declaredGroup()
        manager.withExclusiveControl { (isAcquired: Bool, error: (any Error)?) in
            var record = FixtureRecord("obtained")
            record.acquired = isAcquired
            do {
                if let error { throw error }
                let existing = try manager.fetchCurrentDownloads().first { $0.identifier == item.identifier }
                record.value = existing == nil ? "new" : "existing"
                let download = try existing ?? item.download(group: group)
                try manager.startForegroundDownload(download)
                record.download = download.listed
            } catch { record.note(error) }
            Output.write(record)
        }
    }

    /// Waits for asynchronous work; what it throws is noted.
    func awaiting(
        _ record: FixtureRecord, _ body: @escaping @Sendable (inout FixtureRecord) async throws -> Void
    ) -> FixtureRecord {
        let result = Reply(record)
        let done = DispatchSemaphore(value: 0)
        let begin = ContinuousClock.now
        Task {
            var record = record
            do { try await body(&record) } catch { record.note(error) }
            record.elapsed = Int((ContinuousClock.now - begin) / .milliseconds(1))
            result.record.withLock { $0 = record }
            done.signal()
        }
        done.wait()
        return result.record.withLock { $0 }
    }
}

/// A record on its way between tasks.
private final class Reply: Sendable {
    let record: Mutex<FixtureRecord>
    init(_ record: FixtureRecord) { self.record = Mutex(record) }
}
