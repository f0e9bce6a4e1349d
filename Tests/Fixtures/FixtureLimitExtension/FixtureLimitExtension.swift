// An extension that goes to its limits and beyond, as its manifest says.
import BackgroundAssets
import ExtensionFoundation
import FixturePlan
import Foundation
import Glibc

@main struct FixtureLimitExtension: BADownloaderExtension {
    private let group = declaredGroup()
    private let container: URL

    init() {
        let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        container = url ?? URL(fileURLWithPath: "/nowhere")
    }

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        guard let line = firstLine(of: manifestURL), let plan = try? JSONDecoder().decode(LimitPlan.self, from: line)
        else { return [] }
        try? line.write(to: container.appendingPathComponent(FixtureName.plan), options: .atomic)
        append(FixtureRecord("request"), to: container)
        let deeds = Deeds(container: container, manifest: manifestURL)
        deeds.perform(plan.request)
        return Set(plan.downloads.map { $0.download(group: group) })
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        var record = FixtureRecord("finished")
        record.download = finishedDownload.listed
        append(record, to: container)
        let plan = FileManager.default.contents(atPath: container.appendingPathComponent(FixtureName.plan).path)
            .flatMap { try? JSONDecoder().decode(LimitPlan.self, from: $0) }
        Deeds(container: container, manifest: fileURL).perform(plan?.finished ?? .init(.nothing))
        try? moveAsset(fileURL, as: finishedDownload.identifier, in: container)
    }

    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        var record = FixtureRecord("failed")
        record.download = failedDownload.listed
        append(record, to: container)
    }

    func extensionWillTerminate() {
        var record = FixtureRecord("terminates")
        record.onMainThread = Thread.isMainThread
        append(record, to: container)
    }

    /// Without the rest, which may be larger than the memory there is.
    private func firstLine(of file: URL) -> Data? {
        guard let handle = try? FileHandle(forReadingFrom: file) else { return nil }
        return try? handle.read(upToCount: 64 << 10)?.prefix { $0 != UInt8(ascii: "\n") }
    }
}
