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
        for asset in assets {
            found += messagesOutOfPlace(asset, device)
            found += fileOutOfPlace(asset, device)
            found += bytesFetchedTwice(asset, device)
        }
        found += leftovers(device)
        found += try recordsOutOfPlace(device)
        return found
    }

    /// Nothing is left of an installation that was cancelled.
    func remains(on device: SimulatedDevice) throws -> [String] {
        let folders = [
            "Applications", "Applications/.staging", "Transfers", "Containers/Group", "Containers/Extension",
        ]
        var found = folders.flatMap { folder in
            ((try? device.tree.list(folder)) ?? []).filter { $0 != ".staging" }.map { "\(folder)/\($0) was left" }
        }
        let (apps, downloads, intents) = try device.query { store in
            (try store.apps(), try store.downloads(limit: 100), try store.intents())
        }
        found += apps.map { "the app \($0.id) was left" }
        found += downloads.map { "the row of \($0.request.identifier) was left in state \($0.state)" }
        found += intents.map { "an intent was left open: \($0)" }
        return found
    }

    /// Handled or given up; and after that told again only by a service that could not know.
    private func messagesOutOfPlace(_ asset: Asset, _ device: SimulatedDevice) -> [String] {
        let name = asset.identifier
        let calls = device.messages(of: name)
        guard let last = calls.last else { return wasAsked(device) ? ["\(name) was never told of"] : [] }
        var found: [String] = []
        if Set(calls.map(\.uniqueIdentifier)).count > 1 { found.append("\(name) had two downloads") }
        let ends = calls.filter { $0.isFinal }.map(\.process)
        if Set(ends).count < ends.count { found.append("\(name) was told of again after it was handled") }
        // Also those that a service has counted which was killed later.
        let deaths = calls.filter(\.isDeath).count
        if !last.isFinal && deaths < PolicyNumbers.deliveriesMax { found.append("\(name) ended with \(last)") }
        return found
    }

    /// True when the extension was asked and its answer counted.
    private func wasAsked(_ device: SimulatedDevice) -> Bool {
        device.extensions.calls.contains { call in
            if call.kind == .content, case .downloads = call.outcome { true } else { false }
        }
    }

    /// A file lies whole where the extension moved it, or where it was when nobody wanted it.
    private func fileOutOfPlace(_ asset: Asset, _ device: SimulatedDevice) -> [String] {
        guard let last = device.messages(of: asset.identifier).last, last.kind == .finished else { return [] }
        let vended = vendedPaths(of: asset, device)
        let moved = device.place(of: asset.identifier)
        let isMoved = device.messages(of: asset.identifier).contains { $0.hasMoved }
        if last.outcome == .handled && last.answer == .left {
            return vended.map { "\($0) was left" }
        }
        // A power cut right after the extension's answer may undo its move: then it was told again.
        let places = isMoved ? [moved] + vended : vended
        let found = places.compactMap { try? device.tree.read($0, limit: .max) }
        guard let bytes = found.first, found.count == 1 else {
            return ["\(asset.identifier) is there \(found.count) times"]
        }
        if asset.isSpoilt { return ["\(asset.identifier) does not have its digest and was handed over"] }
        let isWhole = device.server.allContents(of: asset.url).contains(bytes)
        return isWhole ? [] : ["\(asset.identifier) holds bytes of no version"]
    }

    /// Where a file of that name waits: folders are shared.
    private func vendedPaths(of asset: Asset, _ device: SimulatedDevice) -> [String] {
        let name = asset.fileName
        return ((try? device.tree.list(device.caches)) ?? []).map { "\(device.caches)/\($0)/\(name)" }.filter {
            (try? device.tree.status($0)) != nil
        }
    }

    private func leftovers(_ device: SimulatedDevice) -> [String] {
        let manifests = device.container(.appExtension, of: "\(Self.app).Downloader") + "/Manifests"
        var found = ["Transfers", "Applications/.staging", manifests].flatMap { folder in
            ((try? device.tree.list(folder)) ?? []).map { "\(folder)/\($0) was left" }
        }
        // What nobody handled stays where it was handed over.
        let messages = device.extensions.calls.filter { $0.kind != .challenge }
        let kept = Set(messages.filter { $0.outcome != .handled }.map(\.identifier))
        let names = Set(assets.filter { kept.contains($0.identifier) }.map(\.fileName))
        for folder in (try? device.tree.list(device.caches)) ?? [] {
            let path = "\(device.caches)/\(folder)"
            let files = (try? device.tree.list(path)) ?? []
            if files.isEmpty { found.append("\(path) was left") }
            found += files.filter { !names.contains($0) }.map { "\(path)/\($0) was left" }
        }
        return found
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

    /// The end of a process costs what was not written yet, a power cut what was not synced; a version without a name begins anew.
    private func bytesFetchedTwice(_ asset: Asset, _ device: SimulatedDevice) -> [String] {
        guard let rate = asset.bytesPerSecond, !asset.mayBeSentAgain else { return [] }
        let log = device.server.log(of: asset.url)
        let sent = log.filter { !$0.isSignIn }.reduce(0) { $0 + $1.sent }
        // A tenth of a second until bytes are written and two until they are synced, and the pieces on the way.
        let ends = device.kills + device.stops
        let bound = asset.length + ends * rate / 4 + device.powerCuts * rate * 5 / 2
        return sent <= bound ? [] : ["\(sent) bytes of \(asset.identifier) were sent, at most \(bound) are sensible"]
    }
}

extension ScriptedExtension.Call {
    /// Nobody gets the message again.
    fileprivate var isFinal: Bool { outcome == .handled || outcome == .notImplemented }

    fileprivate var isDeath: Bool { if case .died = outcome { true } else { false } }

    fileprivate var hasMoved: Bool {
        kind == .finished && (outcome == .handled && answer == .moved || outcome != nil && answer == .movedAndDied)
    }
}
