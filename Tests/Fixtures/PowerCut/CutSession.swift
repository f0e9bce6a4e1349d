// The app: schedules downloads and takes what has finished, until the power is gone.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Glibc

/// One connection of the app to the service, with a thread for each of its streams. Everything is noted in the ledger.
final class CutSession: Sendable {
    private let calls: ServiceConnection
    private let listing: ServiceConnection
    private let events: ServiceConnection
    private let rows: ServiceConnection
    private let ledger: Ledger
    private let app: PowerCutApp
    private let session = Guarded("")
    private let threads = Guarded<[Worker]>([])
    /// From now on everything may fail.
    private let hasNoPower = Guarded(false)
    /// Rings at each callback that has begun, at each row of the journal, and when a stream has ended.
    let callbacks: Bell
    let changes: Bell
    private let answersAll: Bool

    /// - Parameter answersAll: hesitation is over, as after the last start of an app.
    init(_ service: CutService, _ app: PowerCutApp, _ ledger: Ledger, answersAll: Bool) throws {
        (calls, listing) = (try service.connect(), try service.connect())
        (events, rows) = (try service.connect(), try service.connect())
        (callbacks, changes) = (try Bell(), try Bell())
        self.app = app
        self.ledger = ledger
        self.answersAll = answersAll
        ledger.beginSession()
        for connection in [calls, events] {
            _ = try connection.call(ManagerInterface.Declare.self, .init(app: app.identifier))
        }
        let opened = try Bell()
        run { [self] in
            try? events.stream(ManagerInterface.Events.self, Nothing()) { reply in
                for event in reply.events { hear(event, opened) }
                return true
            }
            opened.ring()
            changes.ring()
        }
        try opened.wait(for: PowerCutTrial.patience)
        _ = try calls.call(
            ManagerInterface.SetDelegate.self, .init(session: session.withLock { $0 }, present: true))
        let last = try lastRow()
        run { [self] in
            try? rows.stream(DeviceInterface.Journal.self, .init(app: "", after: last, follow: true)) { page in
                for row in page.entries { read(row) }
                changes.ring()
                return true
            }
            changes.ring()
        }
    }

    private func read(_ row: DeviceInterface.JournalEntry) {
        switch row.event {
        case "extension-called": ledger.extensionTold(row.download)
        case "message-closed": ledger.note(row.download) { $0.isRecorded = true }
        default: break
        }
    }

    private func lastRow() throws -> Int64 {
        var last: Int64 = 0
        try rows.stream(DeviceInterface.Journal.self, .init(app: "", after: 0, follow: false)) { page in
            last = page.entries.last?.number ?? last
            return true
        }
        return last
    }

    private func run(_ body: @escaping @Sendable () -> Void) {
        let worker = Worker(body)
        threads.withLock { $0.append(worker) }
    }

    /// Schedules on a thread of its own, so that the power can go in the middle.
    func schedule(_ downloads: [(download: WireDownload, isForeground: Bool)]) {
        run { [self] in
            for (download, isForeground) in downloads {
                do throws(ClientError) {
                    if isForeground {
                        _ = try calls.call(ManagerInterface.StartForeground.self, .init(download: download))
                    } else {
                        _ = try calls.call(ManagerInterface.Schedule.self, .init(download: download))
                    }
                } catch {
                    if case .refused = error.kind, !hasNoPower.withLock({ $0 }) {
                        ledger.failed(download.uniqueIdentifier, "\(error)")
                    }
                    return
                }
                ledger.note(download.uniqueIdentifier) { $0.isTaken = true }
            }
        }
    }

    /// States of what the service still has to do for the app.
    func left() throws -> [String] {
        var left: [String] = []
        try listing.stream(DeviceInterface.Downloads.self, .init(app: app.identifier)) { page in
            left += page.downloads.map { "\($0.uniqueIdentifier) \($0.state) \($0.reason)" }
            return true
        }
        return left
    }

    func expectPowerCut() { hasNoPower.withLock { $0 = true } }

    /// Returns when nobody of ours uses a file any more.
    func close() {
        for connection in [calls, listing, events, rows] { connection.close() }
        for thread in threads.withLock({ $0 }) { thread.join() }
    }

    // MARK: Callbacks

    private func hear(_ event: ManagerInterface.Event, _ opened: Bell) {
        switch event.kind {
        case "session":
            session.withLock { $0 = event.session ?? "" }
            opened.ring()
        case "finished":
            guard let id = event.download?.uniqueIdentifier, let path = event.path,
                let (entry, isFirst) = ledger.tell(id, path: path)
            else { return }
            callbacks.ring()
            do { try take(id, entry, path, event.number, isFirst) } catch {
                guard !hasNoPower.withLock({ $0 }) else { return }
                ledger.failed(id, "in its callback: \(error)")
            }
        case "failed": ledger.failed(event.download?.uniqueIdentifier ?? "", event.failure?.reason ?? "")
        default: break
        }
    }

    private func take(
        _ id: String, _ entry: Ledger.Entry, _ path: String, _ number: Int64, _ isFirst: Bool
    ) throws {
        let place = ledger.path(of: id)
        // Moved before a power cut, by us or by the extension, and that is not recorded.
        if try PlainFile.exists(place) {
            guard try ledger.look(at: place, id, entry) else { return }
            try sync(id, path)
            return try answer(id, number)
        }
        guard try ledger.look(at: path, id, entry) else { return }
        if isFirst && entry.behaviour == .leaves { return try answer(id, number) }
        ledger.note(id) { $0.move = .begun }
        try check("rename") { rename(path, place) }
        try sync(id, path)
        if isFirst && entry.behaviour == .hesitates && !answersAll { return }
        try answer(id, number)
    }

    private func sync(_ id: String, _ path: String) throws {
        for file in [path, ledger.path(of: id)] {
            let folder = String(file[..<(file.lastIndex(of: "/") ?? file.endIndex)])
            // The folder of a file that was moved before a power cut went with the last file in it.
            if try PlainFile.exists(folder) { try PlainFile.syncFolder(folder) }
        }
        ledger.note(id) { $0.move = .synced }
    }

    private func answer(_ id: String, _ number: Int64) throws {
        ledger.note(id) { $0.answer = .sent }
        let session = session.withLock { $0 }
        _ = try calls.call(ManagerInterface.Answer.self, .init(session: session, handled: [number], notHandled: []))
        ledger.note(id) { $0.answer = .taken }
    }
}
