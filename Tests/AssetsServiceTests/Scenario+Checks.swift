// What must hold of a simulated device once everything has come to rest, whatever happened on the way.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting

extension Scenario {
    /// Everything that is not as it must be after a finished installation; one line each.
    func problems(of device: SimulatedDevice) throws -> [String] {
        var found = device.extensions.problems
        found += filesOutOfPlace(device)
        found += leftovers(device)
        found += try recordsOutOfPlace(device)
        found += messagesOutOfPlace(device)
        found += bytesFetchedTwice(device)
        return found
    }

    /// Each asset lies whole where the extension moved it.
    private func filesOutOfPlace(_ device: SimulatedDevice) -> [String] {
        assets.compactMap { asset in
            let place = ScriptedExtension.place(of: asset.identifier, group: Self.group)
            guard let bytes = try? device.tree.read(place, limit: .max) else { return "\(place) is not there" }
            return bytes == device.server.content(of: asset.url) ? nil : "\(place) holds other bytes"
        }
    }

    private func leftovers(_ device: SimulatedDevice) -> [String] {
        let caches = "Containers/Group/\(Self.group)/Library/Caches/.BackgroundAssets"
        let manifests = "Containers/Extension/\(Self.app).Downloader/Manifests"
        return ["Transfers", "Applications/.staging", caches, manifests].flatMap { folder in
            ((try? device.tree.list(folder)) ?? []).map { "\(folder)/\($0) was left" }
        }
    }

    private func recordsOutOfPlace(_ device: SimulatedDevice) throws -> [String] {
        var found: [String] = []
        let (apps, downloads, intents, installations) = try device.query { store in
            (try store.apps(), try store.downloads(limit: 100), try store.intents(), try store.installations())
        }
        found += downloads.map { "the row of \($0.request.identifier) was left in state \($0.state)" }
        found += intents.map { "an intent was left open: \($0)" }
        found += installations.filter { $0.phase != .launchable }.map { "an installation ended in \($0.phase)" }
        guard let app = apps.first, apps.count == 1 else { return found + ["\(apps.count) apps are installed"] }
        if app.gate != .open { found.append("the gate is shut") }
        let names = (try? device.tree.list("Applications/\(app.id)")) ?? []
        if Set(names) != [app.buildFolder, "current"] { found.append("the app's folder holds \(names)") }
        let link = try? device.tree.readLink("Applications/\(app.id)/current")
        if link != app.buildFolder { found.append("current leads to \(link ?? "nothing")") }
        return found
    }

    /// Each message was handled, and after that told again only by a service that could not know.
    private func messagesOutOfPlace(_ device: SimulatedDevice) -> [String] {
        var found: [String] = []
        for asset in assets {
            let calls = device.extensions.calls.filter { $0.kind == .finished && $0.identifier == asset.identifier }
            if !calls.contains(where: { $0.outcome == .handled }) {
                found.append("\(asset.identifier) was not handled")
            }
            if Set(calls.map(\.uniqueIdentifier)).count > 1 { found.append("\(asset.identifier) had two downloads") }
            let handlers = calls.filter { $0.outcome == .handled }.map(\.process)
            if Set(handlers).count < handlers.count { found.append("\(asset.identifier) was handled twice") }
            if let last = calls.last, last.outcome != .handled {
                found.append("\(asset.identifier) ended with \(last)")
            }
        }
        return found
    }

    /// A kill costs what was not written yet, a power cut what was not synced.
    private func bytesFetchedTwice(_ device: SimulatedDevice) -> [String] {
        assets.compactMap { asset in
            let sent = device.server.log(of: asset.url).reduce(0) { $0 + $1.sent }
            guard let rate = asset.bytesPerSecond else { return nil }
            // A tenth of a second until bytes are written and two until they are synced, and the pieces on the way.
            let bound = asset.length + device.kills * rate / 4 + device.powerCuts * rate * 5 / 2
            return sent <= bound ? nil : "\(sent) bytes of \(asset.identifier) were sent, at most \(bound) are sensible"
        }
    }
}
