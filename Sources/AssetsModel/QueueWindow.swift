// The part of the queue that is held in memory.

/// The next entries of one class, best first: higher priority, then earlier scheduled.
///
/// The store holds the whole queue; when the window has run low and is not `isComplete`, it is read again.
package struct QueueWindow: Sendable {
    package private(set) var entries: [DownloadRecord] = []
    /// Nothing startable is in the store that is not here.
    package private(set) var isComplete = false

    package init() {}

    /// Takes what the store answered; `isComplete` when it had no more.
    package mutating func load(_ records: [DownloadRecord], isComplete: Bool) {
        entries = Array(records.prefix(PolicyNumbers.queueWindowMax))
        self.isComplete = isComplete && entries.count == records.count
    }

    /// A new or newly startable entry.
    package mutating func insert(_ record: DownloadRecord) {
        guard !entries.contains(where: { $0.id == record.id }) else { return }
        let place = entries.firstIndex { record.precedes($0) } ?? entries.endIndex
        if place == entries.endIndex && !isComplete { return }
        entries.insert(record, at: place)
        if entries.count > PolicyNumbers.queueWindowMax {
            entries.removeLast()
            isComplete = false
        }
    }

    package mutating func remove(id: String) { entries.removeAll { $0.id == id } }

    /// Forgets everything; the store has to be asked again.
    package mutating func invalidate() {
        entries = []
        isComplete = false
    }
}

extension DownloadRecord {
    fileprivate func precedes(_ other: DownloadRecord) -> Bool {
        request.priority != other.request.priority
            ? request.priority > other.request.priority : sequence < other.sequence
    }
}
