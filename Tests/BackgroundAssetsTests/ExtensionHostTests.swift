internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import ExtensionFoundation
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

/// An extension whose methods do what a test wants.
private final class Scripted: BADownloaderExtension, Sendable {
    let request: @Sendable (BAContentRequest, URL, BAAppExtensionInfo) -> Set<BADownload>
    let finished: @Sendable (BADownload, URL) -> Void
    let failed: @Sendable (BADownload, any Error) -> Void

    nonisolated init(
        request: @escaping @Sendable (BAContentRequest, URL, BAAppExtensionInfo) -> Set<BADownload> = { _, _, _ in [] },
        finished: @escaping @Sendable (BADownload, URL) -> Void = { _, _ in },
        failed: @escaping @Sendable (BADownload, any Error) -> Void = { _, _ in }
    ) {
        self.request = request
        self.finished = finished
        self.failed = failed
    }
    nonisolated convenience init() {
        self.init(request: { _, _, _ in [] }, finished: { _, _ in }, failed: { _, _ in })
    }

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> { self.request(request, manifestURL, extensionInfo) }
    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        finished(finishedDownload, fileURL)
    }
    func backgroundDownload(_ failedDownload: BADownload, failedWithError error: any Error) {
        failed(failedDownload, error)
    }
}

private struct Empty: BADownloaderExtension {}

@Suite(.timeLimit(.minutes(10))) struct ExtensionHostTests {
    let closed = Gate()

    /// Serves an extension; answers the service's end.
    @MainActor private func serve(_ instance: any BADownloaderExtension) throws -> ServiceConnection {
        var pair = try UnixSocket.pair()
        let host = ExtensionHost(instance, socket: pair.takeFirst()) { [closed] in closed.open() }
        host.start()
        return ServiceConnection(descriptor: pair.takeSecond())
    }

    private func ask(
        _ connection: ServiceConnection, _ parameters: ExtensionInterface.ContentRequest.Parameters
    ) async throws -> [ExtensionInterface.ContentRequest.Reply] {
        try await blocking {
            var pages: [ExtensionInterface.ContentRequest.Reply] = []
            try connection.stream(ExtensionInterface.ContentRequest.self, parameters) { page in
                pages.append(page)
                return true
            }
            return pages
        }
    }

    @Test("A content request reaches the extension on the main actor with all it carries")
    func contentRequest() async throws {
        let extensionInstance = Scripted(request: { request, manifest, information in
            MainActor.assertIsolated()
            #expect(request == .update)
            #expect(manifest.path == "/a b/manifest.json")
            #expect(information.restrictedDownloadSizeRemaining == 5)
            #expect(information.restrictedEssentialDownloadSizeRemaining == nil)
            return [makeDownload("b", essential: true), makeDownload("a")]
        })
        let service = try await serve(extensionInstance)
        let pages = try await ask(
            service, .init(request: 2, manifest: "/a b/manifest.json", remaining: 5, essentialRemaining: nil))
        #expect(pages.count == 1)
        #expect(pages.first?.implemented == true)
        #expect(pages.first?.downloads.map(\.identifier) == ["a", "b"])
        #expect(pages.first?.downloads.map(\.essential) == [false, true])
    }

    @Test("Many downloads come in pages of at most 200", arguments: [200, 201, 450])
    func pages(count: Int) async throws {
        let service = try await serve(
            Scripted(request: { _, _, _ in Set((0..<count).map { makeDownload("level \($0)") }) }))
        let pages = try await ask(service, .init(request: 1, manifest: "/m"))
        #expect(pages.count == (count + 199) / 200)
        #expect(pages.allSatisfy { $0.downloads.count <= 200 && $0.implemented })
        #expect(Set(pages.flatMap(\.downloads).map(\.uniqueIdentifier)).count == count)
    }

    @Test("Large downloads come in pages that fit into a message; what fits into none is left out")
    func largePages() async throws {
        let service = try await serve(
            Scripted(request: { _, _, _ in
                Set(
                    [300_000, 400_000, 500_000, 2_000_000].map { size in
                        var request = makeRequest()
                        request.httpBody = Data(count: size)
                        return BAURLDownload(
                            identifier: "\(size)", request: request, fileSize: 0, applicationGroupIdentifier: "g")
                    })
            }))
        let pages = try await ask(service, .init(request: 1, manifest: "/m"))
        #expect(pages.map { $0.downloads.map(\.identifier) } == [["300000", "400000"], ["500000"]])
    }

    @Test("An extension without methods says so for each entry point")
    func notImplemented() async throws {
        let service = try await serve(Empty())
        let pages = try await ask(service, .init(request: 1, manifest: "/m"))
        #expect(pages == [.init(implemented: false, downloads: [])])
        let replies = try await blocking {
            (
                try service.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire(state: 3), path: "/f")),
                try service.call(
                    ExtensionInterface.DownloadFailed.self,
                    .init(download: makeWire(state: -1), failure: .init(domain: "BAErrorDomain", code: 1, reason: ""))
                ),
                try service.call(ExtensionInterface.WillTerminate.self, Nothing())
            )
        }
        #expect(!replies.0.implemented)
        #expect(!replies.1.implemented)
    }

    @Test("A request that this framework does not know is not implemented", arguments: [0, 99, Int64.max])
    func unknownRequest(number: Int64) async throws {
        let service = try await serve(Scripted(request: { _, _, _ in [makeDownload()] }))
        let pages = try await ask(service, .init(request: number, manifest: "/m"))
        #expect(pages == [.init(implemented: false, downloads: [])])
    }

    @Test("The reply comes when the Task of the entry point has ended, and later calls wait for nothing else")
    func replyWaits() async throws {
        let gate = Gate()
        let log = EventLog<String>()
        let service = try await serve(
            Scripted(
                finished: { download, url in
                    #expect(download.state == .finished)
                    #expect(url.path == "/a b")
                    Task {
                        await gate.wait()
                        log.add("task")
                    }
                    log.add("returned")
                },
                failed: { download, error in
                    #expect(download.state == .failed)
                    log.add("failed \((error as NSError).domain) \((error as NSError).code)")
                }))
        let call = Task {
            let reply = try await blocking {
                try service.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire(state: 3), path: "/a b"))
            }
            log.add("replied \(reply.implemented)")
        }
        await log.wait { $0 == ["returned"] }
        gate.open()
        try await call.value
        let reply = try await blocking {
            try service.call(
                ExtensionInterface.DownloadFailed.self,
                .init(
                    download: makeWire(state: -1),
                    failure: .init(domain: "NSURLErrorDomain", code: -1001, reason: "late")))
        }
        #expect(reply.implemented)
        #expect(log.entries == ["returned", "task", "replied true", "failed NSURLErrorDomain -1001"])
    }

    @Test("The end of the connection is told at once, even while an entry point runs")
    func endOfFile() async throws {
        let entered = Gate()
        let gate = DispatchSemaphore(value: 0)
        let service = try await serve(
            Scripted(finished: { _, _ in
                entered.open()
                gate.wait()
            }))
        let call = Task {
            try await blocking {
                try service.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire(state: 3), path: "/f"))
            }
        }
        // The main thread is blocked by the entry point; this test does not run there.
        await Task.detached { [closed] in
            await entered.wait()
            service.close()
            await closed.wait()
            gate.signal()
        }.value
        await #expect(throws: ClientError.self) { try await call.value }
    }

    @Test("A method that there is not is answered as such, and the connection goes on")
    func unknownMethod() async throws {
        enum Surprise: WireMethod {
            static let name = "org.backgroundassets.Extension.Surprise"
            typealias Parameters = Nothing
            typealias Reply = Nothing
        }
        let service = try await serve(Empty())
        try await blocking {
            let error = #expect(throws: ClientError.self) { try service.call(Surprise.self, Nothing()) }
            #expect(error?.description.contains("Surprise") == true)
            _ = try service.call(ExtensionInterface.WillTerminate.self, Nothing())
        }
    }

    @Test("What is no message ends the connection", arguments: ["hello", "{}", "[", "{\"method\":1}"])
    func noMessage(text: String) async throws {
        var pair = try UnixSocket.pair()
        let host = pair.takeFirst()
        await MainActor.run { [closed, host = SharedEnd(host)] in
            guard let socket = host.take() else { return }
            ExtensionHost(Empty(), socket: socket) { closed.open() }.start()
        }
        EntrySocket(pair.takeSecond()).write(Array(text.utf8))
        await closed.wait()
    }
}

/// Takes a descriptor into a closure.
private final class SharedEnd: Sendable {
    private let descriptor: Guarded<Int32?>
    init(_ descriptor: consuming Descriptor) { self.descriptor = Guarded(descriptor.release()) }
    func take() -> Descriptor? {
        descriptor.withLock { number in
            defer { number = nil }
            return number
        }.map { Descriptor(owning: $0) }
    }
}
