// A second extension of the sample app, in the spellings of 2022: no manifest, no set to answer. What it schedules stands
// in its property list; what it saw it writes down as the other one does.
import BackgroundAssets
import FixturePlan
import Foundation

@main
final class FixtureExtension2022: NSObject, BADownloaderExtension {
    private let group = declaredGroup()
    private let container: URL
    private let items: [FixturePlan.Item]

    override init() {
        let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        container = url ?? URL(fileURLWithPath: "/nowhere")
        items = Self.items()
    }

    func applicationDidInstall(metadata: BAApplicationExtensionInfo) {
        note("installed", metadata)
        for item in items { schedule(item) }
        if let first = items.first { attempt("foreground", first) { try $0.startForegroundDownload($1) } }
    }

    func applicationDidUpdate(metadata: BAApplicationExtensionInfo) { note("updated", metadata) }
    func checkForUpdates(metadata: BAApplicationExtensionInfo) { note("checked", metadata) }

    func backgroundDownloadDidFail(failedDownload: BADownload) {
        var record = FixtureRecord("failed")
        record.download = failedDownload.listed
        if let error = failedDownload.error { record.note(error) }
        write(record)
    }

    func backgroundDownloadDidFinish(finishedDownload: BADownload, fileURL: URL) {
        var record = FixtureRecord("finished")
        record.download = finishedDownload.listed
        record.path = fileURL.path
        record.bytes = (try? Data(contentsOf: fileURL))?.count
        write(record)
        let assets = container.appendingPathComponent(FixtureName.assets)
        try? FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
        try? FileManager.default.moveItem(
            at: fileURL, to: assets.appendingPathComponent(finishedDownload.identifier))
    }

    private func schedule(_ item: FixturePlan.Item) { attempt("scheduled", item) { try $0.schedule($1) } }

    private func attempt(
        _ event: String, _ item: FixturePlan.Item, _ call: (BADownloadManager, BADownload) throws -> Void
    ) {
        guard let url = URL(string: item.url) else { return }
        let download = BAURLDownload(
            identifier: item.identifier, request: URLRequest(url: url), essential: item.essential,
            fileSize: item.size, applicationGroupIdentifier: group, priority: .default)
        var record = FixtureRecord(event)
        do { try call(.shared, download) } catch { record.note(error) }
        record.download = download.listed
        write(record)
    }

    private func note(_ event: String, _ metadata: BAApplicationExtensionInfo) {
        var record = FixtureRecord(event)
        record.remaining = metadata.restrictedDownloadSizeRemaining
        record.essentialRemaining = metadata.restrictedEssentialDownloadSizeRemaining
        record.onMainThread = Thread.isMainThread
        write(record)
    }

    private func write(_ record: FixtureRecord) {
        guard let line = try? record.line() else { return }
        let file = container.appendingPathComponent(FixtureName.log)
        let before = (try? Data(contentsOf: file)) ?? Data()
        try? (before + Data((line + "\n").utf8)).write(to: file)
    }

    private static func items() -> [FixturePlan.Item] {
        let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let list = URL(fileURLWithPath: program).deletingLastPathComponent().appendingPathComponent("Info.plist")
        guard let data = try? Data(contentsOf: list),
            let values = try? PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any],
            let text = values[FixtureName.items] as? String
        else { return [] }
        return (try? JSONDecoder().decode([FixturePlan.Item].self, from: Data(text.utf8))) ?? []
    }
}

extension BADownload {
    fileprivate var listed: FixtureRecord.Listed {
        .init(
            identifier: identifier, uniqueIdentifier: uniqueIdentifier, state: state.rawValue, essential: isEssential,
            priority: priority.rawValue, isURLDownload: self is BAURLDownload,
            isExactlyURLDownload: type(of: self) == BAURLDownload.self)
    }
}
