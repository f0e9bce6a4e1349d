// Runs of extensions and what they used of their day, as rows and back.
package import AssetsModel
internal import FoundationEssentials

extension Database {
    /// Saves a run, and lets the oldest of its app go.
    func save(_ record: ExtensionRun) throws(StoreError) {
        try run(.saveRun) { row throws(StoreError) in
            try row.bind(record.id, at: 1)
            try row.bind(record.app, at: 2)
            try row.bind(record.launchedAt.wholeMicroseconds, at: 3)
            try row.bind(record.endedAt?.wholeMicroseconds, at: 4)
            try row.bind(Int64(record.calls), at: 5)
            try row.bind(record.runtime.wholeMicroseconds, at: 6)
            try row.bind(record.memoryPeak, at: 7)
            try row.bind(record.warnings.sorted().map(\.rawValue).joined(separator: " "), at: 8)
            try row.bind(record.reason.rawValue, at: 9)
            try row.bind(record.detail, at: 10)
        }
        try run(.trimRuns) { row throws(StoreError) in
            try row.bind(record.app, at: 1)
            try row.bind(Int64(PolicyNumbers.extensionRunsMax), at: 2)
        }
    }

    func save(_ ledger: RuntimeLedger, of app: String) throws(StoreError) {
        // Integers always have a JSON form.
        guard let data = try? JSONEncoder().encode(ledger) else { preconditionFailure("a ledger without JSON") }
        try run(.saveRuntime) { row throws(StoreError) in
            try row.bind(app, at: 1)
            try row.bind(String(decoding: data, as: UTF8.self), at: 2)
        }
    }
}

extension Store {
    /// Runs of an app's extension, the last one first.
    package func extensionRuns(app: String, limit: Int) throws(StoreError) -> [ExtensionRun] {
        try opened().rows(.runsOfApp) { row throws(StoreError) in
            try row.bind(app, at: 1)
            try row.bind(Int64(max(0, min(limit, Self.pageMax))), at: 2)
        } read: { row throws(StoreError) in
            row.extensionRun()
        }
    }

    /// Runs of which nobody has seen the end.
    package func openExtensionRuns() throws(StoreError) -> [ExtensionRun] {
        try opened().rows(.openRuns) { row throws(StoreError) in row.extensionRun() }
    }

    /// What each app's extension has used of its day. What cannot be read counts as nothing used.
    package func runtimes() throws(StoreError) -> [String: RuntimeLedger] {
        let pairs = try opened().rows(.runtimes) { row throws(StoreError) in
            let ledger = try? JSONDecoder().decode(RuntimeLedger.self, from: Data(row.text(at: 1).utf8))
            return (row.text(at: 0), ledger ?? RuntimeLedger())
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }
}

extension Statement {
    /// The run in the current row; words of another version are no reason to hide it.
    fileprivate borrowing func extensionRun() -> ExtensionRun {
        ExtensionRun(
            id: text(at: 0), app: text(at: 1), launchedAt: .microseconds(int64(at: 2)),
            endedAt: optionalInt64(at: 3).map { .microseconds($0) }, calls: Int(int64(at: 4)),
            runtime: .microseconds(int64(at: 5)), memoryPeak: int64(at: 6),
            warnings: Set(text(at: 7).split(separator: " ").compactMap { .init(rawValue: String($0)) }),
            reason: Reason(rawValue: text(at: 8)) ?? .none, detail: text(at: 9))
    }
}
