// The scheduler's choice: what may run beside what.

/// The transfers that run, and the rule for the next one.
package struct TransferSlots: Sendable {
    package struct Entry: Hashable, Sendable {
        package var app: String
        package var host: String
        package var transferClass: TransferClass
        package init(app: String, host: String, transferClass: TransferClass) {
            self.app = app
            self.host = host
            self.transferClass = transferClass
        }
    }

    package private(set) var running: [String: Entry] = [:]

    package init() {}

    /// False when nothing of a class can start now, wherever it goes: then no entry needs to be looked at.
    package func hasRoom(for transferClass: TransferClass) -> Bool {
        let isBackground = transferClass == .background
        let count = running.values.reduce(0) { $1.isBackground == isBackground ? $0 + 1 : $0 }
        return count < Self.max(isBackground: isBackground)
    }

    private static func max(isBackground: Bool) -> Int {
        isBackground ? PolicyNumbers.backgroundTransfersMax : PolicyNumbers.foregroundTransfersMax
    }

    /// Why an entry cannot start now; nil when it can.
    package func obstacle(for entry: Entry) -> Reason? {
        var sameClass = 0
        var sameHost = 0
        var sameAppAndHost = 0
        for other in running.values {
            if other.isBackground == entry.isBackground { sameClass += 1 }
            guard other.host == entry.host else { continue }
            sameHost += 1
            if other.app == entry.app { sameAppAndHost += 1 }
        }
        let isFull =
            sameClass >= Self.max(isBackground: entry.isBackground) || sameHost >= PolicyNumbers.transfersPerHostMax
            || sameAppAndHost >= PolicyNumbers.transfersPerAppAndHostMax
        return isFull ? .concurrency : nil
    }

    package mutating func begin(_ id: String, _ entry: Entry) { running[id] = entry }
    package mutating func end(_ id: String) { running[id] = nil }
    package mutating func change(_ id: String, to transferClass: TransferClass) {
        running[id]?.transferClass = transferClass
    }
}

extension TransferSlots.Entry {
    fileprivate var isBackground: Bool { transferClass == .background }
}
