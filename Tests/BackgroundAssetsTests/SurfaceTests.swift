// Values and errors of the surface: raw values, conformances, descriptions, and codes for bad input.

internal import AssetsClient
internal import AssetsWire
internal import ExtensionFoundation
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

@Suite struct SurfaceTests {
    @Test("Raw values are those of Apple's headers")
    func rawValues() {
        #expect(
            (-1...3).compactMap(BADownload.State.init).map(\.description) == [
                "failed", "created", "waiting", "downloading", "finished",
            ])
        #expect(BADownload.State(rawValue: 4) == nil && BADownload.State(rawValue: -2) == nil)
        #expect((0...5).compactMap(BAContentRequest.init) == [.install, .update, .periodic, .languageChange])
        let codes = [0, 50, 51, 55, 56, 100, 101, 102, 103, 109, 111, 112, 113, 202, 203, 204, 206]
        #expect((-10...300).compactMap(BAErrorCode.init).map(\.rawValue) == codes)
        #expect(BAErrorDomain == "BAErrorDomain")
    }

    @Test("Types are what Apple's are, as far as a compiler can tell")
    func conformances() {
        func isValue<T: RawRepresentable & Hashable & Sendable & BitwiseCopyable>(_: T.Type) -> Bool
        where T.RawValue == Int { true }
        #expect(isValue(BADownload.State.self) && isValue(BADownload.Priority.self))
        #expect(isValue(BAContentRequest.self) && isValue(BAErrorCode.self))
        func isObject<T: NSObject & NSSecureCoding & Sendable & CustomDebugStringConvertible>(_: T.Type) -> Bool {
            true
        }
        #expect(isObject(BADownload.self) && isObject(BAURLDownload.self) && isObject(BAAppExtensionInfo.self))
        func isCopying<T: NSCopying>(_: T.Type) -> Bool { true }
        #expect(isCopying(BAURLDownload.self))
        #expect(!(BAErrorCode.downloadInvalid is any Error))
        #expect(BADownload.Priority.min.rawValue < BADownload.Priority.default.rawValue)
        #expect(BADownload.Priority.default.rawValue < BADownload.Priority.max.rawValue)
    }

    @Test("Descriptions name the thing and keep the address to themselves")
    func descriptions() {
        var request = makeRequest("secret-path")
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        let download = BAURLDownload(
            identifier: "level 1", request: request, essential: true, fileSize: 1, applicationGroupIdentifier: "g",
            priority: .max)
        let text = "\(download)"
        #expect(text.contains("BAURLDownload identifier: level 1, uniqueIdentifier: \(download.uniqueIdentifier)"))
        #expect(text.hasSuffix("state: created, essential, priority: max>"))
        #expect(!text.contains("secret"))
        #expect(download.debugDescription == text)
        #expect("\(makeDownload())".hasSuffix("state: created>"))
        #expect("\(BADownload.Priority(7))" == "7")
        let information = BAAppExtensionInfo(remaining: 5, essentialRemaining: nil)
        #expect("\(information)" == "<BAAppExtensionInfo remaining: 5 bytes, essential remaining: unrestricted>")
    }

    @Test("An extension point can be named in the three ways of extensions")
    @MainActor func extensionPoints() {
        struct Plain: BADownloaderExtension {}
        struct Bound: BADownloaderExtension {
            @AppExtensionPoint.Bind var extensionPoint: AppExtensionPoint { Identifier("com.example.point") }
        }
        struct Hosted: BADownloaderExtension {
            var extensionPoint: AppExtensionPoint { Identifier(host: "com.example.app", name: "point") }
        }
        func point(of instance: any AppExtension) -> String { instance.extensionPoint.identifier }
        #expect(point(of: Plain()) == "com.apple.background-asset-downloader-extension")
        #expect(point(of: Bound()) == "com.example.point")
        #expect(point(of: Hosted()) == "com.example.app.point")
    }
}

@Suite struct ErrorTests {
    private func error(_ code: Int, otherwise: BAErrorCode = .downloadInvalid) -> NSError {
        AssetsFailure.error(
            ClientError(.refused(code: code, reason: "level 1 is there", remedy: "cancel it")), otherwise: otherwise)
    }

    @Test("A refusal keeps its code, says what and what to do", arguments: [50, 55, 100, 101, 102, 109, 112, 202, 206])
    func refusal(code: Int) {
        let error = error(code, otherwise: .downloadFailedToStart)
        #expect(error.domain == BAErrorDomain && error.code == code)
        #expect(error.localizedFailureReason == "level 1 is there")
        #expect(error.localizedRecoverySuggestion == "cancel it")
        #expect(error.localizedDescription.contains("level 1 is there"))
        #expect(error.userInfo[NSUnderlyingErrorKey] == nil)
    }

    @Test(
        "What has no code of the framework gets the call's, and the service's as its cause", arguments: [1010, -1, 299])
    func unknown(code: Int) throws {
        for otherwise in [BAErrorCode.downloadInvalid, .downloadFailedToStart] {
            let error = error(code, otherwise: otherwise)
            #expect(error.domain == BAErrorDomain && error.code == otherwise.rawValue)
            #expect(error.localizedFailureReason == "level 1 is there")
            let cause = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
            #expect(cause.domain == AssetsFailure.serviceDomain && cause.code == code)
        }
    }

    @Test("A broken connection is named")
    func connection() {
        for kind in [ClientError.Kind.unreachable("gone"), .violation("nonsense")] {
            let error = AssetsFailure.error(ClientError(kind))
            #expect(error.code == BAErrorCode.callerConnectionInvalid.rawValue)
            #expect(error.localizedFailureReason?.isEmpty == false)
        }
    }

    @Test(
        "Failures of the transport are URLErrors of the usual codes",
        arguments: [-999, -1000, -1001, -1003, -1004, -1005, -1009, -1011, -1100, -1200, -1202, -1013])
    func transport(code: Int) throws {
        let url = "https://assets.example.com/level"
        let error = AssetsFailure.error(
            WireFailure(domain: NSURLErrorDomain, code: Int64(code), reason: "the server is gone"), url: url)
        let failure = try #require(error as? URLError)
        #expect(failure.errorCode == code && (error as NSError).code == code)
        #expect((error as NSError).domain == NSURLErrorDomain)
        #expect(failure.failingURL?.absoluteString == url)
        #expect((error as NSError).localizedFailureReason == "the server is gone")
    }

    @Test("A transport code that Foundation has no name for keeps domain and number", arguments: [7, Int64.max])
    func unknownTransport(code: Int64) {
        let error = AssetsFailure.error(WireFailure(domain: NSURLErrorDomain, code: code, reason: ""), url: "")
        #expect((error as NSError).domain == NSURLErrorDomain && (error as NSError).code == Int(code))
    }
}
