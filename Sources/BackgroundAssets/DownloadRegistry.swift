// One live object for each download of the process, and what the process knows of it.

internal import AssetsOS
internal import AssetsWire

/// What has become of a download, as far as this process was told.
final class DownloadLife: Sendable {
    private struct Content {
        var state: BADownload.State
        /// When the last event told of it; replies to older questions do not override events.
        var eventNumber: UInt64 = 0
        var failure: (any Error)?
    }
    private let content: Guarded<Content>

    init(state: BADownload.State) { content = Guarded(Content(state: state)) }

    var state: BADownload.State { content.withLock { $0.state } }

    /// Why it failed, once it has.
    var failure: (any Error)? { content.withLock { $0.failure } }

    /// Takes the state an event tells. A download that has ended stays so.
    func noteEvent(_ state: BADownload.State, number: UInt64) {
        content.withLock { content in
            content.eventNumber = number
            if content.state != .finished && content.state != .failed { content.state = state }
        }
    }

    /// Takes the state a reply tells, unless an event came since the question was asked.
    func noteReply(_ state: BADownload.State, askedAt number: UInt64) {
        content.withLock { content in
            let hasEnded = content.state == .finished || content.state == .failed
            if !hasEnded && content.eventNumber <= number { content.state = state }
        }
    }

    func noteFailure(_ error: any Error) { content.withLock { $0.failure = error } }
}

/// Knows the live download objects by their unique identifiers, and holds none of them.
final class DownloadRegistry: Sendable {
    static let shared = DownloadRegistry()

    /// `@unchecked Sendable`: constant but for the runtime, which clears the weak reference in a thread-safe way.
    private final class Entry: @unchecked Sendable {
        weak var download: BADownload?
        /// Tells the object even after the reference was cleared.
        let object: ObjectIdentifier

        init(_ download: BADownload) {
            self.download = download
            object = ObjectIdentifier(download)
        }
    }
    private struct Content {
        var entries: [String: Entry] = [:]
        var eventNumber: UInt64 = 0
    }
    private let content = Guarded(Content())

    /// Remembers a new object and answers the one that has the place: the first one that lives keeps it.
    ///
    /// References leave the lock before they end: the last one calls ``forget(_:)``.
    @discardableResult
    func remember(_ download: BADownload) -> BADownload {
        content.withLock { content in
            if let live = content.entries[download.content.uniqueIdentifier]?.download { return live }
            content.entries[download.content.uniqueIdentifier] = Entry(download)
            return download
        }
    }

    /// Forgets an object that ends, unless another has its place by now.
    func forget(_ download: BADownload) {
        let object = ObjectIdentifier(download)
        let unique = download.content.uniqueIdentifier
        content.withLock { content in
            if content.entries[unique]?.object == object { content.entries[unique] = nil }
        }
    }

    /// What is known of a download: shared with the live object, if there is one.
    func life(of uniqueIdentifier: String, state: BADownload.State) -> DownloadLife {
        find(uniqueIdentifier)?.life ?? DownloadLife(state: state)
    }

    /// The live object of that name.
    func find(_ uniqueIdentifier: String) -> BADownload? {
        content.withLock { content in content.entries[uniqueIdentifier]?.download }
    }

    /// Objects that live.
    var count: Int { content.withLock { $0.entries.count } }

    /// The number of the last event: taken before a question is sent, so that its reply cannot undo a later event.
    var eventNumber: UInt64 { content.withLock { $0.eventNumber } }

    /// The object of a download that an event tells of, its state up to date.
    func object(ofEvent wire: WireDownload) -> BADownload {
        let download = object(of: wire)
        let number = content.withLock { content in
            content.eventNumber += 1
            return content.eventNumber
        }
        download.life.noteEvent(Self.state(of: wire), number: number)
        return download
    }

    /// The object of a download that a reply tells of, its state up to date.
    func object(ofReply wire: WireDownload, askedAt number: UInt64) -> BADownload {
        let download = object(of: wire)
        download.life.noteReply(Self.state(of: wire), askedAt: number)
        return download
    }

    private func object(of wire: WireDownload) -> BADownload {
        if let live = find(wire.uniqueIdentifier) { return live }
        let values = DownloadContent(wire)
        let life = DownloadLife(state: Self.state(of: wire))
        let fresh: BAURLDownload =
            switch values.kind {
            case .url: BAURLDownload(content: values, life: life)
            case .manifest: BAManifestDownload(content: values, life: life)
            }
        // Another thread may have been faster; its object has the place then.
        return remember(fresh)
    }

    private static func state(of wire: WireDownload) -> BADownload.State {
        BADownload.State(rawValue: Int(clamping: wire.state)) ?? .created
    }
}
