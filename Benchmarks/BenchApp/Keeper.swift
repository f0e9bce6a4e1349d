// An app that wants everything now and keeps what it gets.
import AssetsOS
import BackgroundAssets
import Foundation
import FoundationNetworking

/// Starts a download for each line of a list, a URL and a size, and moves each finished file to where the app keeps its
/// assets; prints "ready" once the service knows of all, and when the last callback ended, in nanoseconds of the monotonic
/// clock.
final class Keeper: NSObject, BADownloadManagerDelegate, Sendable {
    private static let group = "group.org.backgroundassets.bench"

    private let wanted: Int
    private let folder: URL
    private let kept = Guarded(0)

    private init(wanted: Int, folder: URL) {
        self.wanted = wanted
        self.folder = folder
    }

    func download(_ download: BADownload, finishedWithFileURL fileURL: URL) {
        do {
            try FileManager.default.moveItem(at: fileURL, to: folder.appending(path: download.identifier))
        } catch {
            return Self.say("\(download.identifier): \(error)")
        }
        let isLast = kept.withLock { kept in
            kept += 1
            return kept == wanted
        }
        if isLast { Self.say("\(Int64(MonotonicClock.now / .nanoseconds(1)))") }
    }

    func download(_ download: BADownload, failedWithError error: any Error) {
        Self.say("\(download.identifier): \(error)")
    }

    /// Keeps files until SIGTERM.
    static func run(on manager: BADownloadManager, _ arguments: [String]) throws {
        guard arguments.count == 2, let list = try? String(contentsOfFile: arguments[1], encoding: .utf8),
            let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        else { throw CocoaError(.keyValueValidation) }
        let folder = container.appending(path: "Kept")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let lines = list.split(separator: "\n")
        let keeper = Keeper(wanted: lines.count, folder: folder)
        manager.delegate = keeper
        for line in lines { try manager.startForegroundDownload(try download(line)) }
        say("ready")
        withExtendedLifetime(keeper) { while true { pause() } }
    }

    private static func download(_ line: Substring) throws -> BADownload {
        let fields = line.split(separator: " ")
        guard fields.count == 2, let url = URL(string: String(fields[0])), let size = Int(fields[1]) else {
            throw CocoaError(.keyValueValidation)
        }
        return BAURLDownload(
            identifier: url.lastPathComponent, request: URLRequest(url: url), essential: false, fileSize: size,
            applicationGroupIdentifier: group, priority: .default)
    }

    private static func say(_ text: String) {
        print(text)
        fflush(nil)
    }
}
