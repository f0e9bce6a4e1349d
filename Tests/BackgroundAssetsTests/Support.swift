// What the tests of this target share: folders of their own, logs that can be waited for, values.

internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

extension Tag {
    /// Starts a compiler: minutes, not milliseconds.
    @Tag static var slow: Self
}

/// What happened, in order, for tests that wait for it.
final class EventLog<Entry: Sendable>: Sendable {
    private struct Waiter: Sendable {
        let number: Int
        let isDone: @Sendable ([Entry]) -> Bool
        let resume: @Sendable (Bool) -> Void
    }
    private struct Content {
        var entries: [Entry] = []
        var waiters: [Waiter] = []
        var number = 0
    }
    private let content = Guarded(Content())

    var entries: [Entry] { content.withLock { $0.entries } }

    func add(_ entry: Entry) {
        let done: [Waiter] = content.withLock { content in
            content.entries.append(entry)
            let entries = content.entries
            let done = content.waiters.filter { $0.isDone(entries) }
            let numbers = Set(done.map(\.number))
            content.waiters.removeAll { numbers.contains($0.number) }
            return done
        }
        for waiter in done { waiter.resume(true) }
    }

    /// Waits until the entries satisfy a condition, and answers them; records an issue when that takes too long.
    @discardableResult
    func wait(
        _ limit: TimeInterval = 20, _ location: SourceLocation = #_sourceLocation,
        until isDone: @escaping @Sendable ([Entry]) -> Bool
    ) async -> [Entry] {
        let isFulfilled = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let number: Int? = content.withLock { content in
                if isDone(content.entries) { return nil }
                content.number += 1
                content.waiters.append(
                    Waiter(number: content.number, isDone: isDone) { continuation.resume(returning: $0) })
                return content.number
            }
            guard let number else { return continuation.resume(returning: true) }
            DispatchQueue.global().asyncAfter(deadline: .now() + limit) { self.giveUp(number) }
        }
        if !isFulfilled { Issue.record("waited in vain; so far: \(entries)", sourceLocation: location) }
        return entries
    }

    private func giveUp(_ number: Int) {
        let late = content.withLock { content in
            content.waiters.firstIndex { $0.number == number }.map { content.waiters.remove(at: $0) }
        }
        late?.resume(false)
    }
}

/// Opens once; whoever waits goes on then.
struct Gate: Sendable {
    private let log = EventLog<Bool>()

    func open() { log.add(true) }
    func wait(_ location: SourceLocation = #_sourceLocation) async {
        await log.wait(20, location) { !$0.isEmpty }
    }
    var isOpen: Bool { !log.entries.isEmpty }
}

/// Runs blocking code off the pool of Swift's tasks.
func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        Thread { continuation.resume(with: Result(catching: body)) }.start()
    }
}

/// A folder of a test's own; removed with the object.
final class TemporaryFolder: Sendable {
    let url: URL

    init(in parent: URL = FileManager.default.temporaryDirectory) throws {
        url = parent.appendingPathComponent("assets-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func file(_ name: String, _ text: String) throws -> URL {
        let file = url.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file
    }

    var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: url.path))?.sorted() ?? [] }
}

func text(_ url: URL) -> String? { (try? Data(contentsOf: url)).map { String(decoding: $0, as: UTF8.self) } }

func makeRequest(_ path: String = "file") -> URLRequest {
    var components = URLComponents()
    components.scheme = "https"
    components.host = "assets.example.com"
    components.path = "/" + path
    guard let url = components.url else { preconditionFailure("no URL for \(path)") }
    return URLRequest(url: url)
}

func makeDownload(_ identifier: String = "level", essential: Bool = false) -> BAURLDownload {
    BAURLDownload(
        identifier: identifier, request: makeRequest(identifier), essential: essential, fileSize: 7,
        applicationGroupIdentifier: "group.example", priority: .default)
}

func makeWire(
    _ identifier: String = "level", unique: String = UUID().uuidString, kind: String = "url", state: Int64 = 1
) -> WireDownload {
    WireDownload(
        identifier: identifier, uniqueIdentifier: unique, url: "https://assets.example.com/\(identifier)",
        method: "GET", headers: [], body: "", group: "group.example", essential: false, size: 7, priority: 0,
        kind: kind, state: state)
}

/// The error that blocking code throws; records an issue when it throws none.
func failure(
    _ location: SourceLocation = #_sourceLocation, of body: @escaping @Sendable () throws -> Void
) async -> NSError? {
    do {
        try await blocking(body)
        Issue.record("no error was thrown", sourceLocation: location)
        return nil
    } catch {
        return error as NSError
    }
}
