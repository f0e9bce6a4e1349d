// One app, its manifest and its assets on a simulated network.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting

/// What an app consists of, and how its servers and its extension behave.
struct Scenario {
    struct Asset {
        var identifier: String
        var length: Int
        var isEssential: Bool
        var priority = 0
        var bytesPerSecond: Int?
        var etag: String? = "\"1\""
        var answers: [ScriptedResource.Answer] = []
        var messageAnswers: [ScriptedExtension.MessageAnswer] = []
        /// Only who sends this is served.
        var credential: Credential?
        var lastModified: String?
        var parts = ScriptedResource.Parts.proper
        /// What the server says of its bytes, and what the manifest does.
        var sentDigest = ScriptedResource.Digest.none
        var declaredDigest = Declared.none
        /// Requests before which the file is replaced by another one.
        var replacements: [Int] = []

        enum Declared: Hashable, Sendable, CaseIterable {
            case none
            case right
            case wrong
        }

        /// The file never arrives: its bytes are not those that somebody spoke of.
        var isSpoilt: Bool { declaredDigest == .wrong || sentDigest == .wrong && declaredDigest == .none }
        /// The server is at fault when bytes are sent more often than they need be.
        var mayBeSentAgain: Bool {
            etag == nil || etag?.hasPrefix("W/") == true || parts != .proper || !replacements.isEmpty
                || sentDigest == .wrong
                || declaredDigest == .wrong
        }

        /// The last part of its URL; nil for the identifier.
        var lastPart: String?

        var fileName: String { lastPart ?? identifier }
        var url: String { "https://cdn.example.com/" + (lastPart.map { "\(identifier)/\($0)" } ?? identifier) }
    }

    static let app = "org.example.app"
    static let group = "group.org.example.app"
    static let archiveURL = "https://cdn.example.com/Simulated.tar.zst"
    static let manifestURL = "https://cdn.example.com/manifest"

    /// Long enough in time for progress and syncs, short in bytes.
    var assets = [
        Asset(identifier: "e1", length: 60_000, isEssential: true, bytesPerSecond: 40_000),
        Asset(identifier: "e2", length: 9_000, isEssential: true, bytesPerSecond: 40_000),
        Asset(identifier: "l1", length: 30_000, isEssential: false, bytesPerSecond: 20_000),
        Asset(identifier: "l2", length: 2_000, isEssential: false),
    ]
    /// Bytes of the app's archive; nil for an app that is installed from a folder.
    var archiveLength: Int?
    var archiveAnswers: [ScriptedResource.Answer] = []
    var manifestAnswers: [ScriptedResource.Answer] = []
    var manifestCredential: Credential?
    /// What the extension says to servers that ask: first these, then always the other.
    var challengeAnswers: [ScriptedExtension.ChallengeAnswer] = []
    var challengeAnswer = ScriptedExtension.ChallengeAnswer.notImplemented
    var contentAnswers: [ScriptedExtension.ContentAnswer] = []
    var essentialAllowance: Int64? = 1 << 30

    var source: String { archiveLength == nil ? "/apps/Simulated.app" : Self.archiveURL }

    /// Small files that arrive together; some have the same name.
    static var many: Scenario {
        var scenario = Scenario()
        scenario.assets = (0..<14).map { index in
            var asset = Asset(identifier: "m\(index)", length: 100 + index, isEssential: index < 6)
            if index.isMultiple(of: 4) { asset.lastPart = "same" }
            return asset
        }
        scenario.assets[3].messageAnswers = [.left]
        scenario.assets[8].messageAnswers = [.left]
        scenario.assets[5].messageAnswers = [.died]
        return scenario
    }

    /// A device to which the app and its servers are known; its service does not run yet.
    func device(seed: UInt64) -> SimulatedDevice {
        let device = SimulatedDevice(seed: seed)
        device.staging.set(
            archiveLength == nil ? source : ScriptedStaging.archive,
            .simulated(Self.app, manifestURL: Self.manifestURL, essentialAllowance: essentialAllowance))
        if let archiveLength {
            device.server.set(
                Self.archiveURL,
                ScriptedResource(
                    .generated(length: archiveLength, seed: 1), bytesPerSecond: 20_000, answers: archiveAnswers))
        }
        var resource = ScriptedResource(.bytes(manifest), answers: manifestAnswers)
        resource.credential = manifestCredential
        device.server.set(Self.manifestURL, resource)
        device.extensions.answerContent(contentAnswers)
        device.extensions.answerChallenges(challengeAnswers, then: challengeAnswer)
        for (index, asset) in assets.enumerated() {
            var resource = ScriptedResource(
                .generated(length: asset.length, seed: UInt64(index)), etag: asset.etag,
                bytesPerSecond: asset.bytesPerSecond, answers: asset.answers)
            resource.credential = asset.credential
            resource.lastModified = asset.lastModified
            resource.parts = asset.parts
            resource.digest = asset.sentDigest
            resource.versions = versions(of: asset, index)
            device.server.set(asset.url, resource)
            device.extensions.answerMessages(of: asset.identifier, asset.messageAnswers)
        }
        return device
    }

    /// Of the same length, so that nothing but its name and its bytes tells one version from another.
    private func versions(of asset: Asset, _ index: Int) -> [ScriptedResource.Version] {
        asset.replacements.enumerated().map { number, request in
            let isNamed = asset.etag.map { !$0.hasPrefix("W/") } ?? false
            return ScriptedResource.Version(
                from: request, .generated(length: asset.length, seed: UInt64(1000 * (number + 1) + index)),
                etag: isNamed ? "\"r\(number)\"" : asset.etag,
                lastModified: asset.lastModified.map { _ in "Mon, 13 Nov 2023 23:00:0\(number) GMT" })
        }
    }

    private var manifest: [UInt8] {
        ScriptedManifest.bytes(
            assets.enumerated().map { index, asset in
                ScriptedManifest.Entry(
                    asset.identifier, asset.url, size: asset.length, isEssential: asset.isEssential,
                    priority: asset.priority, digest: declared(asset, index))
            })
    }

    private func declared(_ asset: Asset, _ index: Int) -> ContentDigest? {
        let content = { ScriptedResource(.generated(length: asset.length, seed: UInt64(index))).content[...] }
        return switch asset.declaredDigest {
        case .none: nil
        case .right: .sha256(of: content())
        case .wrong: .sha256(of: content() + [0])
        }
    }
}

extension SimulatedDevice {
    /// Starts the service, installs the scenario's app and lets everything come to rest.
    func installAndSettle(_ scenario: Scenario) throws {
        try start()
        _ = try install(scenario.source)
        try settle()
    }

    /// All journal rows.
    func journal() throws -> [JournalEntry] {
        try query { try $0.journal(limit: 1000).map(\.entry) }
    }

    /// The only row of an event.
    func row(_ event: JournalEvent, _ reason: Reason? = nil) throws -> JournalEntry? {
        let rows = try journal().filter { $0.event == event && (reason == nil || $0.reason == reason) }
        return rows.count == 1 ? rows.first : nil
    }

    /// Calls of the extension about one download.
    func messages(of identifier: String) -> [ScriptedExtension.Call] {
        extensions.calls.filter { $0.identifier == identifier && $0.kind != .challenge }
    }

    /// Where finished files of the scenario's app wait for their receivers.
    var caches: String { container(.group, of: Scenario.group) + "/Library/Caches/.BackgroundAssets" }

    /// Where the extension moves a file.
    func place(of identifier: String) -> String {
        ScriptedExtension.place(of: identifier, in: container(.group, of: Scenario.group))
    }

    /// The bytes that the extension moved to their place.
    func moved(_ identifier: String) -> [UInt8]? { try? tree.read(place(of: identifier), limit: .max) }
}
