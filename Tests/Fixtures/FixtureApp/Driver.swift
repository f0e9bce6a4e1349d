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
    let manager = BADownloadManager.shared
    let group = declaredGroup()
    private lazy var defaults = sharedDefaults(group)
    /// All that were ever set: the manager holds them weakly.
    private var delegates: [any BADownloadManagerDelegate] = []
    /// The objects of what was scheduled here, by identifier.
    private var kept: [String: BADownload] = [:]
    let releases = DispatchSemaphore(value: 0)

    var container: URL {
        FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
            ?? URL(fileURLWithPath: "/nowhere")
    }

    func perform(_ command: String) {
        let words = command.split(separator: " ", maxSplits: 1).map(String.init)
        let argument = words.count > 1 ? words[1] : ""
        var reply = FixtureRecord("reply")
        reply.command = command
        do {
            if try !performDownloads(words[0], argument, &reply), try !performControl(words[0], argument, &reply),
                try !performFiles(words[0], argument, &reply), try !performPorting(words[0], argument, &reply),
                try !performChallenges(words[0], argument)
            {
                reply.reason = "unknown command"
            }
        } catch { reply.note(error) }
        Output.write(reply)
    }

    // MARK: Downloads

    private func performDownloads(_ verb: String, _ argument: String, _ reply: inout FixtureRecord) throws -> Bool {
        switch verb {
        case "list": reply.downloads = try manager.fetchCurrentDownloads().map(\.listed)
        case "forms": listInAllForms(&reply)
        case "shared":
            let manager = manager
            reply = awaiting(reply) { $0.value = String(BADownloadManager.shared === manager) }
        case "schedule", "foreground":
            let download: BADownload = try item(argument).download(group: group)
            kept[download.identifier] = download
            reply.downloads = [download.listed]
            try start(download, verb)
            reply.download = download.listed
        case "again":
            let words = argument.split(separator: " ", maxSplits: 1).map(String.init)
            guard let download = kept[words[1]] else { throw CocoaError(.fileNoSuchFile) }
            try start(download, words[0])
            reply.download = download.listed
        case "promote":
            let download = try current(argument)
            try manager.startForegroundDownload(download)
            reply.download = download.listed
        case "promote-kept": promoteKept(&reply)
        case "cancel": try manager.cancel(try current(argument))
        case "values":
            let download = try item(argument).download(group: group)
            reply.downloads = [download.listed, download.removingEssential().listed]
        case "delegate": setDelegate(argument, &reply)
        default: return false
        }
        return true
    }

    // MARK: Challenges

    private func performChallenges(_ verb: String, _ argument: String) throws -> Bool {
        let answers = { try JSONDecoder().decode([FixtureAnswer].self, from: Data(argument.utf8)) }
        switch verb {
        case "answers": delegates.append(AnsweringDelegate(try answers()))
        case "answers-later": delegates.append(AsynchronousDelegate(try answers()))
        default: return false
        }
        manager.delegate = delegates.last
        return true
    }

    // MARK: What ports need

    private func performPorting(_ verb: String, _ argument: String, _ reply: inout FixtureRecord) throws -> Bool {
        switch verb {
        case "bundle": reply.noteBundle()
        case "replace": reply.texts = try replace(from: argument)
        case "map": reply.bytes = try memoryOfMapping(argument)
        case "set": defaults.set(Int(argument), forKey: FixtureName.fromApp)
        case "get": reply.number = defaults.integer(forKey: argument)
        case "add": addNumbers(200, argument, to: defaults)
        case "count": reply.number = countNumbers(argument, in: defaults)
        default: return false
        }
        return true
    }

    private func start(_ download: BADownload, _ verb: String) throws {
        switch verb {
        case "schedule": try manager.scheduleDownload(download)
        case "foreground": try manager.startForegroundDownload(download)
        default: try manager.cancel(download)
        }
    }

    func item(_ text: String) throws -> FixturePlan.Item {
        try JSONDecoder().decode(FixturePlan.Item.self, from: Data(text.utf8))
    }

    func make(_ item: FixturePlan.Item) throws -> BADownload { try item.download(group: group) }

    private func current(_ identifier: String) throws -> BADownload {
        let found = try manager.fetchCurrentDownloads().first { $0.identifier == identifier }
        guard let found else { throw CocoaError(.fileNoSuchFile) }
        return found
    }

    /// What is not accepted does not keep the others from it.
    private func promoteKept(_ reply: inout FixtureRecord) {
        for (_, download) in kept.sorted(by: { $0.key < $1.key }) {
            do { try manager.startForegroundDownload(download) } catch { reply.note(error) }
        }
    }

    /// Synchronous off the main thread, with a completion handler twice, and asynchronous.
    private func listInAllForms(_ reply: inout FixtureRecord) {
        let manager = manager
        let done = DispatchSemaphore(value: 0)
        @Sendable func write(_ form: String, _ downloads: [BADownload], _ error: (any Error)?) {
            var record = FixtureRecord("listed")
            record.value = form
            record.downloads = downloads.map(\.listed).sorted { $0.identifier < $1.identifier }
            record.label = currentQueueLabel()
            record.onMainThread = Thread.isMainThread
            if let error { record.note(error) }
            Output.write(record)
            done.signal()
        }
        Thread.detachNewThread {
            do { write("synchronous", try manager.fetchCurrentDownloads(), nil) } catch {
                write("synchronous", [], error)
            }
        }
        for _ in 0..<2 { manager.fetchCurrentDownloads { write("completion", $0, $1) } }
        Task {
            do { write("asynchronous", try await manager.currentDownloads, nil) } catch {
                write("asynchronous", [], error)
            }
        }
        for _ in 0..<4 { done.wait() }
        reply.value = "done"
    }

    // MARK: Delegates

    private func setDelegate(_ argument: String, _ reply: inout FixtureRecord) {
        let words = argument.split(separator: " ").map(String.init)
        let label = words.count > 1 ? words[1] : nil
        switch words.first {
        case "full": delegates.append(FullDelegate(container: container, label: label))
        case "exclusive": delegates.append(ExclusiveDelegate(container: container, label: label))
        case "mapped": delegates.append(MappingDelegate(container: container, label: label))
        case "retry": delegates.append(RetryingDelegate(container: container, label: nil, retries: label, group: group))
        case "blocking": delegates.append(BlockingDelegate(container: container, releases: releases))
        case "unfinished": delegates.append(UnfinishedDelegate())
        case "empty": delegates.append(EmptyDelegate())
        case "dropped":
            do {
                let delegate = FullDelegate(container: container, label: nil)
                manager.delegate = delegate
                reply.value = manager.delegate === delegate ? "held" : "lost"
            }
            reply.acquired = manager.delegate != nil
            return
        default:
            manager.delegate = nil
            return
        }
        manager.delegate = delegates.last
    }
}

/// The label of the queue that the caller runs on. Swift's Dispatch does not offer this function of libdispatch here.
private func currentQueueLabel() -> String {
    typealias GetLabel = @convention(c) (UnsafeRawPointer?) -> UnsafePointer<CChar>
    guard let symbol = dlsym(nil, "dispatch_queue_get_label") else { return "unknown" }
    return String(cString: unsafeBitCast(symbol, to: GetLabel.self)(nil))
}

extension FixturePlan.Item {
    func download(group: String) throws -> BAURLDownload {
        guard let url = URL(string: url) else { throw CocoaError(.formatting) }
        if let sha256 {
            return BAURLDownload(
                identifier: identifier, request: URLRequest(url: url), essential: essential, fileSize: size,
                applicationGroupIdentifier: self.group ?? group, priority: .init(priority), sha256: sha256)
        }
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
}
