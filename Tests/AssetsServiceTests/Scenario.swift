// One app, its manifest and its assets on a simulated device, and what must hold of them in the end.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting

/// What an app on the simulated network consists of.
struct Scenario {
    struct Asset {
        var identifier: String
        var length: Int
        var isEssential: Bool
        var bytesPerSecond: Int?
        var answers: [ScriptedResource.Answer] = []

        var url: String { "https://cdn.example.com/\(identifier)" }
    }

    static let app = "org.example.app"
    static let group = "group.org.example.app"
    static let source = "/apps/Simulated.app"
    static let manifestURL = "https://cdn.example.com/manifest"

    var assets = [
        Asset(identifier: "e1", length: 600_000, isEssential: true, bytesPerSecond: 400_000),
        Asset(identifier: "e2", length: 90_000, isEssential: true, bytesPerSecond: 400_000),
        Asset(identifier: "l1", length: 300_000, isEssential: false, bytesPerSecond: 200_000),
        Asset(identifier: "l2", length: 20_000, isEssential: false),
    ]
    var manifestAnswers: [ScriptedResource.Answer] = []
    var essentialAllowance: Int64? = 1 << 30

    /// A device to which the app and its servers are known; its service does not run yet.
    func device(seed: UInt64) -> SimulatedDevice {
        let device = SimulatedDevice(seed: seed)
        let entries = assets.map {
            ScriptedManifest.Entry($0.identifier, $0.url, size: $0.length, isEssential: $0.isEssential)
        }
        device.staging.set(
            Self.source,
            .simulated(Self.app, manifestURL: Self.manifestURL, essentialAllowance: essentialAllowance))
        device.server.set(
            Self.manifestURL, ScriptedResource(.bytes(ScriptedManifest.bytes(entries)), answers: manifestAnswers))
        for (index, asset) in assets.enumerated() {
            device.server.set(
                asset.url,
                ScriptedResource(
                    .generated(length: asset.length, seed: UInt64(index)), bytesPerSecond: asset.bytesPerSecond,
                    answers: asset.answers))
        }
        return device
    }

    /// The device after a whole installation with nothing in its way.
    func installed(seed: UInt64) throws -> SimulatedDevice {
        let device = device(seed: seed)
        try device.start()
        _ = try device.install()
        try device.settle()
        return device
    }
}
