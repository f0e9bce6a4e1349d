// The process of an extension: the service calls, the extension's methods answer.

internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import ExtensionFoundation
internal import Foundation
internal import Glibc

extension BADownloaderExtension {
    /// Starts the extension and serves the calls of the asset service until it closes the connection.
    ///
    /// A process that the service did not start says so on standard error and ends with status 64.
    @MainActor @preconcurrency public static func main() throws {
        guard ProcessEnvironment.value(EnvironmentKey.isExtension, in: ProcessEnvironment.current) == "1" else {
            Diagnostics.warn("\(AppExtensionError.notStartedByService("the asset service"))")
            exit(EX_USAGE)
        }
        SecondStage.enter()
        StandardOutput.sendLineByLine()
        let host = ExtensionHost(Self(), socket: Descriptor(owning: InheritedDescriptor.entryPoints)) {
            // The service has closed the socket: nothing that is still to do counts.
            _exit(0)
        }
        host.start()
        ExtensionHost.serveMainThread()
    }
}

/// Runs the entry points of one extension on the main thread and sends their answers.
@MainActor final class ExtensionHost {
    /// Stack of the thread that reads calls.
    private static nonisolated let stackSize = 256 << 10

    let instance: any BADownloaderExtension
    private nonisolated let socket: EntrySocket
    private nonisolated let closed: @Sendable () -> Void
    /// Sends replies in order.
    private nonisolated let replies = DispatchQueue(label: "org.backgroundassets.replies")

    /// - Parameters:
    ///   - socket: Where the service calls.
    ///   - closed: Called on the reading thread when the service has closed the socket.
    init(
        _ instance: any BADownloaderExtension, socket: consuming Descriptor, closed: @escaping @Sendable () -> Void
    ) {
        self.instance = instance
        self.socket = EntrySocket(socket)
        self.closed = closed
    }

    /// Reads calls on a thread of its own.
    func start() {
        let reader = Thread { [self] in
            socket.readFrames { frame in
                receive(frame)
                return true
            }
            closed()
        }
        reader.name = "entry points"
        reader.stackSize = Self.stackSize
        reader.start()
    }

    /// Stops reading.
    nonisolated func stop() { socket.shutDown() }

    /// Runs what is sent to the main thread, for good.
    static func serveMainThread() -> Never {
        // A run loop without a timer or port returns at once.
        let forever = Timer(timeInterval: .greatestFiniteMagnitude, repeats: true) { _ in }
        RunLoop.main.add(forever, forMode: .default)
        while true { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
    }

    // MARK: Calls

    /// Takes a call. On the reading thread.
    private nonisolated func receive(_ frame: UnsafeRawBufferPointer) {
        do throws(WireError) {
            let header = try WireCodec.decodeHeader(frame)
            switch header.method {
            case ExtensionInterface.ContentRequest.name:
                let parameters = try WireCodec.decodeParameters(ExtensionInterface.ContentRequest.self, frame)
                onMain { $0.request(parameters) }
            case ExtensionInterface.ApplicationEvent.name:
                let parameters = try WireCodec.decodeParameters(ExtensionInterface.ApplicationEvent.self, frame)
                onMain { $0.applicationEvent(parameters) }
            case ExtensionInterface.DownloadFailed.name:
                let parameters = try WireCodec.decodeParameters(ExtensionInterface.DownloadFailed.self, frame)
                onMain { $0.failed(parameters) }
            case ExtensionInterface.DownloadFinished.name:
                let parameters = try WireCodec.decodeParameters(ExtensionInterface.DownloadFinished.self, frame)
                onMain { $0.finished(parameters) }
            case ExtensionInterface.Challenged.name:
                let parameters = try WireCodec.decodeParameters(ExtensionInterface.Challenged.self, frame)
                onMain { $0.challenged(parameters) }
            case ExtensionInterface.WillTerminate.name:
                onMain { $0.willTerminate() }
            default:
                reply(try WireCodec.error("org.varlink.service.MethodNotFound", ["method": header.method]))
            }
        } catch {
            // Not our protocol: whoever sends it is told by the end of the connection.
            Diagnostics.warn("the service's call cannot be understood: \(error)")
            socket.shutDown()
        }
    }

    private nonisolated func onMain(_ call: @escaping @MainActor @Sendable (ExtensionHost) -> Void) {
        DispatchQueue.main.async { MainActor.assumeIsolated { call(self) } }
    }

    private func request(_ parameters: ExtensionInterface.ContentRequest.Parameters) {
        guard let request = BAContentRequest(rawValue: Int(clamping: parameters.request)) else {
            reply(pages: [], isImplemented: false)
            return
        }
        let information = BAAppExtensionInfo(parameters.remaining, essential: parameters.essentialRemaining)
        let manifest = URL(fileURLWithPath: parameters.manifest, isDirectory: false)
        perform { [instance] in
            var downloads: Set<BADownload> = []
            let isImplemented = MissingMethod.isImplemented(.contentRequest) {
                downloads = instance.downloads(for: request, manifestURL: manifest, extensionInfo: information)
            }
            return (downloads, isImplemented)
        } ended: { [self] downloads, isImplemented in
            reply(pages: DownloadPages.make(downloads), isImplemented: isImplemented)
        }
    }

    private func applicationEvent(_ parameters: ExtensionInterface.ApplicationEvent.Parameters) {
        let information = BAAppExtensionInfo(parameters.remaining, essential: parameters.essentialRemaining)
        perform { [instance] in
            MissingMethod.isImplemented(.applicationEvent) {
                guard let request = BAContentRequest(rawValue: Int(clamping: parameters.request)) else {
                    return MissingMethod.note(.applicationEvent)
                }
                Calls2022.shared.tell(instance, of: request, information)
            }
        } ended: { [self] isImplemented in
            reply(
                ExtensionInterface.ApplicationEvent.self,
                ExtensionInterface.ApplicationEvent.Reply(implemented: isImplemented))
        }
    }

    private func failed(_ parameters: ExtensionInterface.DownloadFailed.Parameters) {
        let download = DownloadRegistry.shared.object(ofEvent: parameters.download)
        let error = AssetsFailure.error(parameters.failure, url: parameters.download.url)
        download.life.noteFailure(error)
        perform { [instance] in
            MissingMethod.isImplemented(.failed) { instance.backgroundDownload(download, failedWithError: error) }
        } ended: { [self] isImplemented in
            reply(
                ExtensionInterface.DownloadFailed.self,
                ExtensionInterface.DownloadFailed.Reply(implemented: isImplemented))
        }
    }

    private func finished(_ parameters: ExtensionInterface.DownloadFinished.Parameters) {
        let download = DownloadRegistry.shared.object(ofEvent: parameters.download)
        let file = URL(fileURLWithPath: parameters.path, isDirectory: false)
        RepairProbe.checkAtFinish()
        perform { [instance] in
            MissingMethod.isImplemented(.finished) {
                instance.backgroundDownload(download, finishedWithFileURL: file)
            }
        } ended: { [self] isImplemented in
            reply(
                ExtensionInterface.DownloadFinished.self,
                ExtensionInterface.DownloadFinished.Reply(implemented: isImplemented))
        }
    }

    private func willTerminate() {
        perform { [instance] in
            Calls2022.shared.tellOfEnd(instance)
        } ended: { [self] _ in
            reply(ExtensionInterface.WillTerminate.self, Nothing())
        }
    }

    /// Runs an entry point; `ended` follows, on any thread, when everything it started has ended.
    private func perform<Result: Sendable>(
        _ entryPoint: () -> Result, ended: @escaping @Sendable (Result) -> Void
    ) {
        CallbackScope.run(entryPoint, ended: ended)
    }

    // MARK: Replies

    private nonisolated func reply(pages: [[WireDownload]], isImplemented: Bool) {
        let pages = pages.isEmpty ? [[]] : pages
        for (index, page) in pages.enumerated() {
            reply(
                ExtensionInterface.ContentRequest.self,
                ExtensionInterface.ContentRequest.Reply(implemented: isImplemented, downloads: page),
                continues: index + 1 < pages.count)
        }
    }

    nonisolated func reply<M: WireMethod>(_ method: M.Type, _ value: M.Reply, continues: Bool = false) {
        do throws(WireError) {
            reply(try WireCodec.reply(method, value, continues: continues))
        } catch {
            Diagnostics.warn("an answer to the service cannot be sent: \(error)")
            socket.shutDown()
        }
    }

    private nonisolated func reply(_ frame: [UInt8]) {
        // The process may be stopped as soon as the service has the reply.
        replies.async { [socket] in
            StandardOutput.flush()
            socket.write(frame)
            RepairProbe.checkAtAnswer()
        }
    }
}

extension BAAppExtensionInfo {
    /// Sizes as the wire has them.
    fileprivate convenience init(_ remaining: Int64?, essential: Int64?) {
        self.init(
            remaining: remaining.map { Int(clamping: $0) }, essentialRemaining: essential.map { Int(clamping: $0) })
    }
}

/// Downloads as pages of an answer.
enum DownloadPages {
    /// Cuts downloads, in a fixed order, into pages that fit into a message each.
    static func make(_ downloads: Set<BADownload>) -> [[WireDownload]] {
        let ordered = downloads.sorted {
            ($0.content.identifier, $0.content.uniqueIdentifier) < ($1.content.identifier, $1.content.uniqueIdentifier)
        }
        var pages: [[WireDownload]] = []
        var page: [WireDownload] = []
        var size = 0
        for download in ordered {
            if let obstacle = download.content.obstacle {
                Diagnostics.warn("\(obstacle.reason); it is not downloaded; \(obstacle.remedy)")
                continue
            }
            DownloadRegistry.shared.remember(download)
            let next = download.content.wireSize
            if page.count == WireLimit.pageMax || size + next > WireLimit.messageMax {
                pages.append(page)
                (page, size) = ([], 0)
            }
            page.append(download.content.wire(state: download.state))
            size += next
        }
        if !page.isEmpty { pages.append(page) }
        return pages
    }
}
