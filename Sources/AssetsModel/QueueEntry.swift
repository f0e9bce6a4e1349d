// What the choice of the next transfer needs to know of a download.

/// A download that waits for its transfer, or has one.
package struct QueueEntry: Hashable, Sendable {
    package var id: String
    package var app: String
    /// Lower case, without port: limits of servers count by it.
    package var host: String
    package var transferClass: TransferClass
    package var priority: Int
    /// Order of those with the same priority, lowest first: as they were scheduled, until one has stepped back.
    package var place: Int64
    /// Bytes still to come; nil when nobody has said how large the file is.
    package var remaining: Int64?

    package init(
        id: String, app: String, host: String, transferClass: TransferClass, priority: Int = 0, place: Int64,
        remaining: Int64? = nil
    ) {
        self.id = id
        self.app = app
        self.host = host
        self.transferClass = transferClass
        self.priority = priority
        self.place = place
        self.remaining = remaining
    }

    /// - Parameters:
    ///   - size: As the app announced it, or the server; 0 when unknown.
    ///   - received: Bytes of it that are there.
    package init(
        id: String, app: String, url: String, transferClass: TransferClass, priority: Int, place: Int64, size: Int64,
        received: Int64
    ) {
        let origin = try? RequestOrigin(url: url, allowsLoopbackHTTP: true)
        self.init(
            id: id, app: app, host: origin?.host ?? "", transferClass: transferClass, priority: priority, place: place,
            remaining: size > 0 ? max(0, size - received) : nil)
    }

    /// Half places of its server that it takes as one of its app.
    var share: Int { remaining.map { $0 <= PolicyNumbers.smallTransferMax } ?? false ? 1 : 2 }

    /// Whether it goes before another one of its app and class.
    package func precedes(_ other: QueueEntry) -> Bool {
        priority != other.priority ? priority > other.priority : place < other.place
    }

    /// Whether so much less of it is to come that it had better go first. What nobody knows the size of counts as small
    /// until it has run for a while, and as large from then on.
    func isShorter(than running: QueueEntry) -> Bool {
        guard let remaining, let other = running.remaining else { return true }
        // Files of about the same size would else take turns for ever, each of them late in the end.
        return remaining < other / 2
    }
}

extension DownloadRecord {
    package var queueEntry: QueueEntry {
        let total = resume?.total ?? 0
        return QueueEntry(
            id: id, app: app, url: request.url, transferClass: transferClass, priority: request.priority, place: place,
            size: total > 0 ? total : request.size, received: received)
    }
}
