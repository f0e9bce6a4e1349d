// What the sample app does at a command, and what it says.
import BackgroundAssets
import Dispatch
import FixturePlan
import Foundation
import FoundationNetworking
import Glibc

/// Writes records to standard output, whole lines only.
enum Output {
    private static let lock = NSLock()

    static func write(_ record: FixtureRecord) {
        guard let line = try? record.line() else { return }
        let bytes = Array((line + "\n").utf8)
        lock.withLock { _ = Glibc.write(1, bytes, bytes.count) }
    }
}

/// Carries out commands, one after the other, on the main thread.
final class Driver {
    private let manager = BADownloadManager.shared
    let group = declaredGroup()
    private lazy var defaults = sharedDefaults(group)
    private var delegate: (any BADownloadManagerDelegate)?
    private let releases = DispatchSemaphore(value: 0)

    func perform(_ command: String) {
        let words = command.split(separator: " ", maxSplits: 1).map(String.init)
        let argument = words.count > 1 ? words[1] : ""
        var reply = FixtureRecord("reply")
        reply.command = command
        do {
            switch words.first {
            case "list": reply.downloads = try manager.fetchCurrentDownloads().map(\.listed)
            case "schedule":
                let download = try item(argument).download(group: group)
                try manager.scheduleDownload(download)
                reply.download = download.listed
            case "foreground":
                let download = try item(argument).download(group: group)
                try manager.startForegroundDownload(download)
                reply.download = download.listed
            case "promote":
                let download = try current(argument)
                try manager.startForegroundDownload(download)
                reply.download = download.listed
            case "cancel": try manager.cancel(try current(argument))
            case "container":
                reply.path = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)?.path
            case "bundle": reply.noteBundle()
            case "replace": reply.texts = try replace(from: argument)
            case "map": reply.bytes = try memoryOfMapping(argument)
            case "set": defaults.set(Int(argument), forKey: FixtureName.fromApp)
            case "get": reply.number = defaults.integer(forKey: argument)
            case "add": addNumbers(200, argument, to: defaults)
            case "count": reply.number = countNumbers(argument, in: defaults)
            case "delegate": setDelegate(argument)
            case "answers": delegate = AnsweringDelegate(try answers(argument))
            case "answers-later": delegate = AsynchronousDelegate(try answers(argument))
            case "acquire": acquire()
            case "acquire-before":
                let date = Date(timeIntervalSinceNow: (Double(argument) ?? 0) / 1000)
                manager.withExclusiveControl(beforeDate: date) { (isAcquired: Bool, error: (any Error)?) in
                    Self.noteControl(isAcquired, error)
                }
            case "release": releases.signal()
            default: reply.reason = "unknown command"
            }
        } catch { reply.note(error) }
        if words.first?.hasPrefix("answers") == true { manager.delegate = delegate }
        Output.write(reply)
    }

    private func answers(_ text: String) throws -> [FixtureAnswer] {
        try JSONDecoder().decode([FixtureAnswer].self, from: Data(text.utf8))
    }

    private func item(_ text: String) throws -> FixturePlan.Item {
        try JSONDecoder().decode(FixturePlan.Item.self, from: Data(text.utf8))
    }

    private func current(_ identifier: String) throws -> BADownload {
        let found = try manager.fetchCurrentDownloads().first { $0.identifier == identifier }
        guard let found else { throw CocoaError(.fileNoSuchFile) }
        return found
    }

    private func setDelegate(_ kind: String) {
        switch kind {
        case "full": delegate = FullDelegate(group: group)
        case "unfinished": delegate = UnfinishedDelegate()
        default: delegate = nil
        }
        manager.delegate = delegate
    }

    private func acquire() {
        let releases = releases
        manager.withExclusiveControl { (isAcquired: Bool, error: (any Error)?) in
            Self.noteControl(isAcquired, error)
            if isAcquired { releases.wait() }
        }
    }

    private static func noteControl(_ isAcquired: Bool, _ error: (any Error)?) {
        var record = FixtureRecord("control")
        record.acquired = isAcquired
        if let error { record.note(error) }
        Output.write(record)
    }
}

/// Hears everything but the end of a download.
private final class UnfinishedDelegate: NSObject, BADownloadManagerDelegate {
    func downloadDidBegin(_ download: BADownload) { Output.write(download.record("began")) }
}

/// Hears everything, and takes finished files.
private final class FullDelegate: NSObject, BADownloadManagerDelegate {
    private let group: String

    init(group: String) { self.group = group }

    func downloadDidBegin(_ download: BADownload) { Output.write(download.record("began")) }
    func downloadDidPause(_ download: BADownload) { Output.write(download.record("paused")) }

    func download(
        _ download: BADownload, didWriteBytes bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite totalExpectedBytes: Int64
    ) {
        var record = download.record("progress")
        record.written = bytesWritten
        record.total = totalBytesWritten
        record.expected = totalExpectedBytes
        Output.write(record)
    }

    func download(_ download: BADownload, failedWithError error: any Error) {
        var record = download.record("failed")
        record.note(error)
        Output.write(record)
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        var record = download.record("finished")
        record.path = fileURL.path
        record.bytes = (try? Data(contentsOf: fileURL))?.count
        let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        if let assets = container?.appendingPathComponent(FixtureName.assets) {
            try? FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
            try? FileManager.default.moveItem(at: fileURL, to: assets.appendingPathComponent(download.identifier))
        }
        Output.write(record)
    }
}

extension FixturePlan.Item {
    fileprivate func download(group: String) throws -> BAURLDownload {
        guard let url = URL(string: url) else { throw CocoaError(.formatting) }
        return BAURLDownload(
            identifier: identifier, request: URLRequest(url: url), essential: essential, fileSize: size,
            applicationGroupIdentifier: self.group ?? group, priority: .init(priority))
    }
}

extension BADownload {
    var listed: FixtureRecord.Listed {
        .init(
            identifier: identifier, uniqueIdentifier: uniqueIdentifier, state: state.rawValue, essential: isEssential,
            priority: priority.rawValue, isURLDownload: self is BAURLDownload,
            isExactlyURLDownload: type(of: self) == BAURLDownload.self)
    }

    func record(_ event: String) -> FixtureRecord {
        var record = FixtureRecord(event)
        record.download = listed
        record.byDelegate = true
        record.onMainThread = Thread.isMainThread
        return record
    }
}
