// The extension of the sample app: does what its manifest says and writes down what it saw.
import BackgroundAssets
import Dispatch
import ExtensionFoundation
import FixturePlan
import Foundation
import Glibc
import os.log

@main struct FixtureExtension: BADownloaderExtension {
    private let group = declaredGroup()
    let container: URL
    private let delegate: ExtensionDelegate?
    private let isMadeOnMain: Bool

    init() {
        MainActor.assertIsolated()
        isMadeOnMain = Thread.isMainThread
        let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        container = url ?? URL(fileURLWithPath: "/nowhere")
        delegate = ExtensionDelegate(container)
        storedPlan(in: container)?.die(at: .made, in: container)
        if storedPlan(in: container)?.setsDelegate == true { BADownloadManager.shared.delegate = delegate }
    }

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        let manifest = try? Data(contentsOf: manifestURL)
        var record = FixtureRecord("request")
        record.request = request.rawValue
        record.path = manifestURL.path
        record.bytes = manifest?.count
        record.remaining = extensionInfo.restrictedDownloadSizeRemaining
        record.noteBundle()
        record.essentialRemaining = extensionInfo.restrictedEssentialDownloadSizeRemaining
        record.onMainThread = Thread.isMainThread
        record.madeOnMain = isMadeOnMain
        record.container = container.path
        record.isWritable =
            FileManager.default.isWritableFile(atPath: manifestURL.path)
            && FileHandle(forWritingAtPath: manifestURL.path) != nil
        append(record, to: container)
        guard let manifest, let plan = try? JSONDecoder().decode(FixturePlan.self, from: manifest) else { return [] }
        try? manifest.write(to: container.appendingPathComponent(FixtureName.plan), options: .atomic)
        plan.die(at: .requestBegins, in: container)
        for line in plan.prints { print(line) }
        if !plan.calls.isEmpty {
            var record = FixtureRecord("called")
            record.texts = Dictionary(uniqueKeysWithValues: plan.calls.map { ($0, serviceAnswer(to: $0)) })
            append(record, to: container)
        }
        if let text = plan.logs {
            Logger(subsystem: "org.example", category: "fixture")
                .notice("request \(request.rawValue) of \(text), \(text, privacy: .public)")
        }
        switch plan.request {
        case .answer: break
        case .crash: abort()
        case .hang: hang()
        case .wait: passTurnstile(in: container)
        case .crowd:
            crowdQueues()
            append(FixtureRecord("crowded"), to: container)
        case .hangOnce:
            let mark = container.appendingPathComponent(FixtureName.hung).path
            if !FileManager.default.fileExists(atPath: mark) {
                _ = FileManager.default.createFile(atPath: mark, contents: nil)
                hang()
            }
        case .schedule: for item in plan.followUps { schedule(item) }
        case .addsLater: return answerAndAdd(plan)
        }
        let answer: Set<BADownload> = Set(plan.downloads.map { item in item.download(group: group) })
        plan.die(at: .requestIsDone, in: container)
        plan.dieSoon(at: .requestReturns, in: container)
        return answer
    }

    /// Adds to the set that it has returned, while the service takes it.
    private func answerAndAdd(_ plan: FixturePlan) -> Set<BADownload> {
        let (group, container) = (group, container)
        var answer: Set<BADownload> = Set(plan.downloads.map { $0.download(group: group) })
        defer {
            for item in plan.followUps { answer.insert(item.download(group: group)) }
            var record = FixtureRecord("added")
            record.downloads = answer.map(\.listed)
            append(record, to: container)
        }
        return answer
    }

    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        var record = FixtureRecord("failed")
        record.download = failedDownload.listed
        record.note(error)
        append(record, to: container)
        guard let plan = storedPlan(in: container) else { return }
        plan.die(at: .failedBegins, in: container)
        if plan.requeues, failedDownload.isEssential {
            note("scheduled", failedDownload) {
                try BADownloadManager.shared.scheduleDownload(failedDownload.removingEssential())
            }
        }
        plan.die(at: .failedIsDone, in: container)
        plan.dieSoon(at: .failedReturns, in: container)
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        Calls.finished += 1
        var record = FixtureRecord("finished")
        record.download = finishedDownload.listed
        record.path = fileURL.path
        record.bytes = (try? Data(contentsOf: fileURL))?.count
        record.onMainThread = Thread.isMainThread
        record.count = Calls.finished
        let plan = storedPlan(in: container) ?? FixturePlan()
        if plan.numbers > 0 {
            let defaults = sharedDefaults(group)
            record.number = defaults.integer(forKey: FixtureName.fromApp)
            defaults.set((record.number ?? 0) + 1, forKey: FixtureName.fromExtension)
            addNumbers(plan.numbers, FixtureName.fromExtension, to: defaults)
        }
        append(record, to: container)
        plan.die(at: .finishedBegins, in: container)
        crashIfWanted(plan)
        if let first = plan.downloads.first, first.identifier == finishedDownload.identifier { followUp(plan) }
        if plan.ignoresUnknown && !plan.downloads.contains(where: { $0.identifier == finishedDownload.identifier }) {
            return
        }
        take(fileURL, of: finishedDownload, plan)
        plan.die(at: .finishedIsDone, in: container)
        plan.dieSoon(at: .finishedReturns, in: container)
    }

    /// What the end of the first download brings with it.
    private func followUp(_ plan: FixturePlan) {
        for item in plan.followUps where plan.request == .answer { schedule(item) }
        for item in plan.foregrounds {
            note("foreground", item.download(group: group)) {
                try BADownloadManager.shared.startForegroundDownload(item.download(group: group))
            }
        }
        for item in plan.passing {
            let download = item.download(group: group)
            note("scheduled", download) { try BADownloadManager.shared.scheduleDownload(download) }
            list()
            note("cancelled", download) { try BADownloadManager.shared.cancel(download) }
            list()
        }
    }

    private func list() {
        var record = FixtureRecord("listed")
        do { record.downloads = try BADownloadManager.shared.fetchCurrentDownloads().map(\.listed) } catch {
            record.note(error)
        }
        append(record, to: container)
    }

    private func take(_ file: URL, of download: BADownload, _ plan: FixturePlan) {
        switch plan.finished {
        case .move: move(file, of: download, in: container)
        case .handle: append(handle(file, as: download.identifier, in: container), to: container)
        case .moveExclusively, .holdExclusively:
            BADownloadManager.shared.withExclusiveControl { [container] (isAcquired: Bool, error: (any Error)?) in
                var record = FixtureRecord("control")
                record.acquired = isAcquired
                if let error { record.note(error) }
                append(record, to: container)
                plan.die(at: .controlled, in: container)
                if plan.finished == .holdExclusively && isAcquired { passTurnstile(in: container) }
                move(file, of: download, in: container)
            }
        case .hold:
            passTurnstile(in: container)
            move(file, of: download, in: container)
        case .enter:
            append(FixtureRecord("entering"), to: container)
            for _ in 0..<plan.entries { enterOnce(container) }
            move(file, of: download, in: container)
        case .delete:
            var record = FixtureRecord("deleted")
            do { try FileManager.default.removeItem(at: file) } catch { record.note(error) }
            append(record, to: container)
        case .leave: break
        case .hang: hang()
        case .exit: _exit(3)
        }
    }

    /// Counts in a file, since the next one is another process.
    private func crashIfWanted(_ plan: FixturePlan) {
        let file = container.appendingPathComponent(FixtureName.crashes)
        let count = FileManager.default.contents(atPath: file.path)?.count ?? 0
        guard count < plan.crashes else { return }
        try? Data(repeating: UInt8(ascii: "x"), count: count + 1).write(to: file)
        abort()
    }

    private func schedule(_ item: FixturePlan.Item) {
        let download = item.download(group: group)
        note("scheduled", download) { try BADownloadManager.shared.scheduleDownload(download) }
    }

    private func note(_ event: String, _ download: BADownload, _ call: () throws -> Void) {
        var record = FixtureRecord(event)
        do { try call() } catch { record.note(error) }
        record.download = download.listed
        append(record, to: container)
    }

    private func hang() -> Never { while true { pause() } }
}

/// What this process was called for.
private enum Calls {
    // Entry points run one at a time, on the main thread.
    nonisolated(unsafe) static var finished = 0
}

/// What the extension hears while it runs.
private final class ExtensionDelegate: NSObject, BADownloadManagerDelegate {
    private let container: URL

    init(_ container: URL) { self.container = container }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        var record = FixtureRecord("finished")
        record.download = download.listed
        record.byDelegate = true
        record.onMainThread = Thread.isMainThread
        guard storedPlan(in: container)?.isDelegateExclusive == true else {
            do {
                try moveAsset(fileURL, as: download.identifier, in: container)
                record.moved = true
            } catch { record.note(error) }
            return append(record, to: container)
        }
        let container = container
        BADownloadManager.shared.withExclusiveControl { [record] (isAcquired: Bool, _: (any Error)?) in
            var record = record
            record.acquired = isAcquired
            record.moved = false
            do {
                if FileManager.default.fileExists(atPath: fileURL.path) {
                    try moveAsset(fileURL, as: download.identifier, in: container)
                    record.moved = true
                }
            } catch { record.note(error) }
            append(record, to: container)
        }
    }
}

func storedPlan(in container: URL) -> FixturePlan? {
    FileManager.default.contents(atPath: container.appendingPathComponent(FixtureName.plan).path)
        .flatMap { try? JSONDecoder().decode(FixturePlan.self, from: $0) }
}

/// One visit to exclusive control, written down.
private func enterOnce(_ container: URL) {
    let done = DispatchSemaphore(value: 0)
    BADownloadManager.shared.withExclusiveControl { (isAcquired: Bool, _: (any Error)?) in
        append(line: "in \(thisRun)", to: FixtureName.entries, in: container)
        append(line: "\(isAcquired ? "out" : "never") \(thisRun)", to: FixtureName.entries, in: container)
        done.signal()
    }
    done.wait()
}

/// Leaves work waiting for longer than the second after which libdispatch looks at its threads.
private func crowdQueues() {
    let (end, group) = (DispatchTime.now() + .milliseconds(2500), DispatchGroup())
    for _ in 0..<4 * ProcessInfo.processInfo.activeProcessorCount {
        DispatchQueue.global().async(group: group) { while DispatchTime.now() < end {} }
    }
    group.wait()
}

private func move(_ file: URL, of download: BADownload, in container: URL) {
    try? moveAsset(file, as: download.identifier, in: container)
}

func append(_ record: FixtureRecord, to container: URL) {
    guard let line = try? record.line() else { return }
    append(line: line, to: FixtureName.log, in: container)
}

extension FixturePlan.Item {
    fileprivate func download(group: String) -> BAURLDownload {
        let request = URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/"))
        if let sha256 {
            return BAURLDownload(
                identifier: identifier, request: request, essential: essential, fileSize: size,
                applicationGroupIdentifier: self.group ?? group, priority: .init(priority), sha256: sha256)
        }
        return BAURLDownload(
            identifier: identifier, request: request, essential: essential, fileSize: size,
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
