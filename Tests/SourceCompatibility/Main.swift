// The app: carries out the parts named on its command line, one after the other, and prints a line for each.
import BackgroundAssets

@main
struct Corpus {
    let server: URL
    let group: String
    let container: URL

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let server = arguments.first.flatMap({ URL(string: $0) }), arguments.count > 2,
            let group = arguments.dropFirst().first,
            let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
        else { throw CocoaError(.fileNoSuchFile) }
        let corpus = Corpus(server: server, group: group, container: container)
        for part in arguments.dropFirst(2) {
            do {
                print("\(part): \(try await corpus.perform(part))")
            } catch {
                print("\(part): threw \(error)")
            }
        }
    }

    private func perform(_ part: String) async throws -> String {
        switch part {
        case "library": try await library()
        case "inherited": try await inherited()
        case "observed": try await observed()
        case "isolated": try await isolated()
        case "stream": try await stream()
        case "exclusive": try await exclusive()
        case "state": try await state()
        case "fetching": try await fetching()
        case "wrapped": try await wrapped()
        case "errors": try await errors()
        case "values": try await values()
        case "old": try await old()
        case "async answer": try await challenged(by: AsyncAnswer(), part)
        case "plain handler": try await challenged(by: PlainHandler(), part)
        case "sendable handler": try await challenged(by: SendableHandler(), part)
        case "files": try files()
        default: "unknown"
        }
    }

    private func download(_ name: String, essential: Bool = false) -> BAURLDownload {
        BAURLDownload(name, at: server, size: 10_000, group: group, essential: essential)
    }

    /// Waits until something holds that a callback brings about, a minute at most.
    private func until(
        isolation: isolated (any Actor)? = #isolation, _ condition: () async -> Bool
    ) async throws {
        let end = Date(timeIntervalSinceNow: 60)
        while await !condition() {
            guard Date() < end else { throw CancellationError() }
            // Gives the callbacks time: the service has to answer first.
            _ = try await BADownloadManager.shared.currentDownloads
        }
    }

    private func size(_ name: String) -> Int {
        (try? Data(contentsOf: container.appendingPathComponent(name)))?.count ?? -1
    }

    // MARK: Delegates

    @MainActor
    private func library() async throws -> String {
        let library = LevelLibrary(folder: container)
        let changes = AsyncStream.makeStream(of: Void.self)
        library.onChange = { changes.continuation.yield() }
        for name in ["level", "missing"] {
            try library.download(name, from: server.appendingPathComponent(name), size: 10_000, group: group)
        }
        for await _ in changes.stream where !library.ready.isEmpty && !library.failures.isEmpty { break }
        let names = "\(library.ready.sorted()) \(library.failures.keys.sorted())"
        return "\(names) \(size("level")) bytes, \(library.progress["level"] ?? 0)"
    }

    private func inherited() async throws -> String {
        let (names, finished) = AsyncStream.makeStream(of: String.self)
        let listener = MovingListener(folder: container) { finished.yield($0) }
        BADownloadManager.shared.delegate = listener
        try BADownloadManager.shared.startForegroundDownload(download("inherited"))
        for await _ in names { break }
        return listener.lines.joined(separator: ", ") + ", \(size("inherited")) bytes"
    }

    @MainActor
    private func observed() async throws -> String {
        let library = ObservableLibrary()
        library.connect()
        try BADownloadManager.shared.startForegroundDownload(download("observed"))
        await library.load()
        try await until { library.states["observed"] == .finished }
        let delegate = ObservableDelegate()
        BADownloadManager.shared.delegate = delegate
        try BADownloadManager.shared.startForegroundDownload(download("observed"))
        try await until { delegate.finished == ["observed"] }
        return "\(library.isLoading) \(delegate.finished)"
    }

    /// In language mode 6 the process ends at the first message: the framework's queue is not the main actor.
    @MainActor
    private func isolated() async throws -> String {
        let delegate = IsolatedDelegate()
        BADownloadManager.shared.delegate = delegate
        let download = download("isolated")
        try BADownloadManager.shared.startForegroundDownload(download)
        try await until { download.state == .finished }
        // Comes on the same queue, after the messages.
        _ = try await Fetching.wrapped()
        return "\(delegate.begun) \(delegate.finished)"
    }

    private func stream() async throws -> String {
        let finished = Fetching.finished(in: container)
        try BADownloadManager.shared.startForegroundDownload(download("streamed"))
        for await name in finished { return "\(name) \(size(name)) bytes" }
        return "ended"
    }

    /// The file of it goes to the extension, because the delegate has no method for it.
    private func challenged(by delegate: some BADownloadManagerDelegate, _ name: String) async throws -> String {
        BADownloadManager.shared.delegate = delegate
        guard let locked = ProcessInfo.processInfo.environment["LOCKED_SERVER"], let url = URL(string: locked) else {
            return "no server"
        }
        let download = BAURLDownload(name, at: url, size: 10_000, group: group)
        try BADownloadManager.shared.startForegroundDownload(download)
        try await until { download.state == .finished || download.state == .failed }
        return withExtendedLifetime(delegate) { download.state.title }
    }

    private func old() async throws -> String {
        let delegate = OldStyle(group: group)
        BADownloadManager.shared.delegate = delegate
        delegate.start(server.appendingPathComponent("old"))
        try Fetching.now().forEach(BADownloadManager.shared.startForegroundDownload)
        try await until { delegate.lines.last == "10000 bytes" }
        return delegate.lines.suffix(2).joined(separator: ", ")
    }

    // MARK: Exclusive control

    @MainActor
    private func exclusive() async throws -> String {
        let folder = container.appendingPathComponent("exclusive")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let list = folder.appendingPathComponent("list")
        try Data("b\na\n".utf8).write(to: list)
        let screen = Screen()
        let rows = try await screen.refresh()
        let later = try await withCheckedThrowingContinuation { continuation in
            screen.refreshLater { continuation.resume(with: $0) }
        }
        let names = try await Catalogue().reload(from: list)
        let detached = try await Janitor.cleanDetached(folder).value == folder.path.count
        let all = try await Janitor.cleanAll([folder, list]) == folder.path.count + list.path.count
        return
            "\(rows) \(later) \(names) \(detached) \(all) \(await Janitor.failing()) \(try await Janitor.clean(folder))"
    }

    @MainActor
    private func state() async throws -> String {
        let updater = IndexUpdater()
        // Set once: the thread sanitizer does not see what a continuation orders that is resumed before it is awaited.
        let (updates, continuation) = AsyncStream.makeStream(of: Int.self)
        updater.onUpdate = { continuation.yield($0) }
        var counts = updates.makeAsyncIterator()
        updater.update(["a", "b", "a"])
        let count = await counts.next() ?? 0
        updater.updateSoon(["c"], before: Date(timeIntervalSinceNow: 10))
        let soon = await counts.next() ?? 0
        let made = try await makeIndex(["a", "a"]).entries["a"] ?? 0
        return "\(count) \(soon) \(made) \(try await countEntries(of: updater))"
    }

    // MARK: Calls

    private func fetching() async throws -> String {
        let manager = BADownloadManager.shared
        try manager.scheduleDownload(download("slow/1"))
        try manager.scheduleDownload(download("slow/2"))
        let later = await withCheckedContinuation { continuation in
            Fetching.later { continuation.resume(returning: $0) }
        }
        let counts = [
            try Fetching.now().count, later.count, try await Fetching.soon().count, try await Fetching.wrapped().count,
        ]
        try await Fetching.promoteAll()
        let promoted = try await Fetching.promoteExclusively()
        try await AssetFetcher().cancelAll()
        return "\(counts) \(promoted) \(try Fetching.now().count)"
    }

    private func wrapped() async throws -> String {
        let downloads = [download("slow/1"), download("slow/2")]
        let fetcher = AssetFetcher()
        let first = try fetcher.fetch([downloads[0]])
        let second = try fetcher.fetch(downloads)
        try await fetcher.cancelAll()
        let none = AssetFetcher(manager: NoDownloads())
        return
            "\(first) \(second) \(try Fetching.now().count) \(try none.fetch(downloads)) \(try none.fetch(downloads))"
    }

    private func errors() async throws -> String {
        let first = download("slow/1")
        let failures = [schedule(first), schedule(download("slow/1")), schedule(download("slow/2", essential: true))]
        let cancelled = [isCancellable(first), isCancellable(first)]
        let url = URL(string: "http://assets.example.com/plain") ?? server
        let plain = schedule(
            BAURLDownload(
                identifier: "plain", request: URLRequest(url: url), fileSize: 0, applicationGroupIdentifier: group))
        return "\(failures.map { $0.map { "\($0)" } ?? "none" }) \(cancelled) \(plain.map { "\($0)" } ?? "none")"
    }

    private func values() async throws -> String {
        let (one, two) = (download("one"), download("two", essential: true))
        var queue = Queue()
        [one, two, one].forEach { queue.add($0) }
        let parts = split([one, two])
        let titles = [one.state.title, BADownload.State.failed.title]
        return "\(queue.names) \(parts.essential.count) \(parts.other.count) \(await describe(one)) \(copies(of: two)) "
            + "\(titles) \(one.priority == .tutorial) \(BAErrorCode.downloadInvalid.isTemporary)"
    }

    private func files() throws -> String {
        let shared = SharedFiles(group: group)
        let new = container.appendingPathComponent("new")
        for text in ["first", "second"] {
            try Data(text.utf8).write(to: new)
            _ = try shared.keep(new, as: "kept")
        }
        let text = String(decoding: try shared.read("Library/Caches/Kept/kept"), as: UTF8.self)
        return
            "\(text) \(shared.preferences?.object(forKey: "kept") is Date) \(shared.request(server).httpMethod ?? "")"
    }
}
