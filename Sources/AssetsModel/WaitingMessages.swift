// Messages that wait in memory until others of their app were answered.

/// Finished and failed downloads in the order in which they ended, app by app. The store has them too: what does not fit in
/// is read from there.
package struct WaitingMessages: Sendable {
    private struct Queue {
        var records: [DownloadRecord] = []
        /// Those before were taken.
        var first = 0
    }

    private var queues: [String: Queue] = [:]
    private var ids: Set<String> = []

    package init() {}

    package var count: Int { ids.count }
    package func contains(_ id: String) -> Bool { ids.contains(id) }
    package func isEmpty(of app: String) -> Bool { queues[app] == nil }

    /// False when there is no room for it.
    package mutating func append(_ record: DownloadRecord) -> Bool {
        guard ids.count < PolicyNumbers.waitingMessagesMax else { return false }
        if ids.insert(record.id).inserted { queues[record.app, default: Queue()].records.append(record) }
        return true
    }

    package mutating func takeFirst(of app: String) -> DownloadRecord? {
        guard var queue = queues.removeValue(forKey: app) else { return nil }
        let record = queue.records[queue.first]
        queue.first += 1
        ids.remove(record.id)
        if queue.first < queue.records.count {
            // What was taken goes when it is half of all, so that taking stays cheap.
            if queue.first * 2 > queue.records.count {
                queue.records.removeFirst(queue.first)
                queue.first = 0
            }
            queues[app] = queue
        }
        return record
    }

    package mutating func removeAll(of app: String) {
        while takeFirst(of: app) != nil {}
    }
}
