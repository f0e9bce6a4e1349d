// The names of 2022: an extension and a delegate written with them are called, and say what they lack.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import ExtensionFoundation
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

/// An extension as the first talk shows it.
private final class First: NSObject, BADownloaderExtension, Sendable {
    let heard = EventLog<String>()

    @available(*, deprecated)
    func applicationDidInstall(metadata: BAApplicationExtensionInfo) {
        MainActor.assertIsolated()
        heard.add("install \(metadata.restrictedDownloadSizeRemaining ?? -1)")
    }
    @available(*, deprecated)
    func applicationDidUpdate(metadata: BAApplicationExtensionInfo) {
        heard.add("update \(metadata.restrictedEssentialDownloadSizeRemaining ?? -1)")
    }
    @available(*, deprecated)
    func checkForUpdates(metadata: BAApplicationExtensionInfo) { heard.add("check") }
    @available(*, deprecated)
    func backgroundDownloadDidFail(failedDownload: BADownload) {
        heard.add("failed \((failedDownload.error as NSError?)?.code ?? 0)")
    }
    func backgroundDownloadDidFinish(finishedDownload: BADownload, fileURL: URL) {
        heard.add("finished \(finishedDownload.identifier) \(fileURL.path)")
    }
}

/// Has no method at all.
private struct Nothing2022: BADownloaderExtension {}

/// Has a method of its own that leaves others to their defaults.
private struct Forwarding: BADownloaderExtension {
    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        backgroundDownload(finishedDownload, failedWithError: CocoaError(.fileNoSuchFile))
    }
}

@Suite(.timeLimit(.minutes(10))) struct Spellings2022Tests {
    @MainActor private func serve(_ instance: any BADownloaderExtension) throws -> ServiceConnection {
        var pair = try UnixSocket.pair()
        ExtensionHost(instance, socket: pair.takeFirst()) {}.start()
        return ServiceConnection(descriptor: pair.takeSecond())
    }

    private func event(_ service: ServiceConnection, _ request: Int64) async throws -> Bool {
        try await blocking {
            try service.call(
                ExtensionInterface.ApplicationEvent.self,
                .init(request: request, remaining: 5, essentialRemaining: 6)
            ).implemented
        }
    }

    @Test("An extension of 2022 has no content request, and is told of each occasion and of each end")
    @available(*, deprecated)
    func extensionOf2022() async throws {
        let instance = await First()
        let service = try await serve(instance)
        let page = try await blocking {
            try service.call(ExtensionInterface.ContentRequest.self, .init(request: 1, manifest: "/m"))
        }
        #expect(!page.implemented && page.downloads.isEmpty)
        for request in [1, 2, 3] as [Int64] { #expect(try await event(service, request)) }
        let replies = try await blocking {
            (
                try service.call(
                    ExtensionInterface.DownloadFailed.self,
                    .init(
                        download: makeWire(state: -1),
                        failure: .init(domain: "BAErrorDomain", code: 204, reason: "too much"))
                ).implemented,
                try service.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire("a", state: 3), path: "/f")
                ).implemented
            )
        }
        #expect(replies == (true, true))
        #expect(instance.heard.entries == ["install 5", "update 6", "check", "failed 204", "finished a /f"])
    }

    @Test("An occasion that 2022 did not have, and an extension without methods, are not implemented")
    func notImplemented() async throws {
        let first = try await serve(First())
        for request in [0, 4, 99, Int64.min] { #expect(try await !event(first, request)) }
        let empty = try await serve(Nothing2022())
        for request in [1, 2, 3] as [Int64] { #expect(try await !event(empty, request)) }
    }

    @Test("A method that leaves others to their defaults is implemented all the same")
    func forwarding() async throws {
        let service = try await serve(Forwarding())
        let replies = try await blocking {
            (
                try service.call(
                    ExtensionInterface.DownloadFinished.self, .init(download: makeWire(state: 3), path: "/f")
                ).implemented,
                try service.call(
                    ExtensionInterface.DownloadFailed.self,
                    .init(download: makeWire(state: -1), failure: .init(domain: "BAErrorDomain", code: 0, reason: ""))
                ).implemented
            )
        }
        #expect(replies == (true, false))
    }
}
