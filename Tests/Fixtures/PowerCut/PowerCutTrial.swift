// Power cuts at random moments of a device's work, and what must be there after each.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Glibc
package import RootHelperClient

/// The app for which everything is downloaded.
package struct PowerCutApp: Sendable {
    package var identifier: String
    package var group: String
    /// Its bundle. Its extension moves what it is told of to `Assets/<identifier>` in the group's container, as the app does.
    package var bundle: String

    package init(identifier: String, group: String, bundle: String) {
        self.identifier = identifier
        self.group = group
        self.bundle = bundle
    }
}

/// What came of the power cuts. The three lists are empty, or the service has broken a promise.
package struct PowerCutOutcome: Sendable {
    package var cycles = 0
    package var downloads = 0
    /// Files that a callback had named before a power cut, and that were looked for after it.
    package var checked = 0
    /// Callbacks that came again after a power cut, as they must: they had not been handled, or that was not recorded.
    package var toldAgain = 0
    package var answersLost = 0
    package var wrong: [String] = []
    package var lost: [String] = []
    package var doubled: [String] = []
}

/// A device on a disk with a write cache, whose power is cut.
///
/// All choices follow from the seed: files, moments, what the app does, what the disk had written of its cache. When exactly
/// a thread gets a processor does not, so a seed repeats the choices and not each microsecond.
package final class PowerCutTrial {
    /// Nothing takes so long, unless it hangs.
    static let patience = Duration.seconds(60)
    /// Removals have no row in the journal.
    private static let lookAgain = Duration.milliseconds(5)
    /// Room for the installed app and for what a few cycles download.
    package static let diskBytes: Int64 = 384 << 20
    /// Downloads of a cycle.
    private static let downloadsMax = 8
    /// Cycles in a row after which the device is let to finish everything.
    private static let unfinishedMax = 3
    /// A cycle's downloads take about half of that.
    private static let momentMax = 150_000
    /// A start takes about so long.
    private static let startMax = 60_000
    /// The steps of a finish take less.
    private static let stepsMax = 4_000

    private let app: PowerCutApp
    private let files: ServedFiles
    private let disk: HelperFileSystem
    private let service: CutService
    private let ledger: Ledger
    private let seed: UInt64
    private var downloads = 0
    private var unfinished = 0
    /// What did not end, and what was left behind.
    private var stuck: [String] = []

    private var root: String { service.location.root }
    /// Of the app's group, below the root.
    private let container: String
    private var assets: String { "\(root)/\(container)/Assets" }

    /// Where the device on a disk will be. What the caller puts there before is kept.
    package static func root(on disk: HelperFileSystem) -> String { disk.path + "/device" }

    /// Makes the device on a disk and installs the app.
    package init(
        _ app: PowerCutApp, files: ServedFiles, programs: PowerCutPrograms, disk: HelperFileSystem, seed: UInt64
    ) throws {
        self.app = app
        self.files = files
        self.disk = disk
        self.seed = seed
        service = CutService(root: Self.root(on: disk), programs: programs)
        try service.start()
        try Self.install(app, on: service)
        container = try service.container(of: app.group)
        ledger = Ledger(files: files, assets: "\(service.location.root)/\(container)/Assets")
        if try !PlainFile.exists(assets) { try check("mkdir") { mkdir(assets, 0o700) } }
        sync()
    }

    private static func install(_ app: PowerCutApp, on service: CutService) throws {
        let connection = try service.connect()
        _ = try connection.call(DeviceInterface.SetDeveloperMode.self, .init(on: true))
        var last: DeviceInterface.InstallUpdate?
        try connection.stream(DeviceInterface.Install.self, .init(source: app.bundle, sourceKind: "store")) {
            last = $0.update
            return true
        }
        connection.close()
        guard last?.phase == "launchable" else {
            throw PowerCutError("the app was not installed: \(last?.detail ?? "no answer")")
        }
    }

    /// Runs cycles until there were so many, or until `goesOn` says no; then lets the device finish everything.
    package func run(cycles: Int, while goesOn: () -> Bool = { true }) throws -> PowerCutOutcome {
        var number = 0
        // What does not end once does not end later.
        while number < cycles, goesOn(), stuck.isEmpty {
            number += 1
            var chance = SeededChance(seed: seed &* 1_000_003 &+ UInt64(number))
            ledger.begin("seed \(seed), cycle \(number)")
            try cycle(&chance)
        }
        if unfinished > 0 && stuck.isEmpty { try recover() }
        service.end()
        let counts = ledger.counts
        return PowerCutOutcome(
            cycles: number, downloads: downloads, checked: counts.checked, toldAgain: counts.toldAgain,
            answersLost: counts.answersLost, wrong: counts.wrong, lost: counts.lost + stuck, doubled: counts.doubled)
    }

    // MARK: One cycle

    private func cycle(_ chance: inout SeededChance) throws {
        if !service.isRunning && chance.oneIn(3) {
            // In the middle of a start, which completes what is open.
            try service.start(untilReady: false)
            try service.ends(within: .microseconds(Int.random(in: 0...Self.startMax, using: &chance)))
            try cut(&chance, nil)
        } else {
            if !service.isRunning { try service.start() }
            let session = try CutSession(service, app, ledger, answersAll: false)
            session.schedule(choose(&chance))
            try waitForMoment(&chance, session)
            try cut(&chance, session)
        }
        try ledger.checkSeen()
        unfinished += 1
        if unfinished == Self.unfinishedMax || !chance.oneIn(3) { try recover() }
    }

    private func choose(_ chance: inout SeededChance) -> [(download: WireDownload, isForeground: Bool)] {
        (0..<Int.random(in: 1...Self.downloadsMax, using: &chance)).map { _ in
            let file = files.choose(&chance)
            let behaviour = Ledger.Behaviour.allCases.randomElement(using: &chance) ?? .keeps
            downloads += 1
            let digits = String(downloads, radix: 16, uppercase: true)
            let id = "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
            ledger.add(id, .init(file: file, behaviour: behaviour))
            let download = WireDownload(
                identifier: id, uniqueIdentifier: id, url: files.url(of: file), method: "GET", headers: [], body: "",
                group: app.group, essential: false, size: Int64(files.size(of: file)), priority: 0, kind: "url",
                state: 0)
            return (download, chance.oneIn(2))
        }
    }

    /// Half of the cuts come at any moment, half close to the end of a download.
    private func waitForMoment(_ chance: inout SeededChance, _ session: CutSession) throws {
        guard chance.oneIn(2) else {
            return try service.ends(within: .microseconds(Int.random(in: 0...Self.momentMax, using: &chance)))
        }
        for _ in 0..<Int.random(in: 1...4, using: &chance) {
            // With fewer downloads than that the moment is simply late.
            guard try session.callbacks.hears(within: .microseconds(Self.momentMax)) else { break }
        }
        try service.ends(within: .microseconds(Int.random(in: 0...Self.stepsMax, using: &chance)))
    }

    private func cut(_ chance: inout SeededChance, _ session: CutSession?) throws {
        // Else it meets a dead disk before it dies, and must not take that for anything to tell or to write.
        if chance.oneIn(2) { service.freeze() }
        session?.expectPowerCut()
        try disk.cutPower(seed: chance.oneIn(4) ? nil : chance.next())
        service.kill()
        session?.close()
        ledger.powerWasCut()
        try disk.mountAgain()
    }

    // MARK: Afterwards

    /// Starts the service and waits until it has nothing left to do.
    private func recover() throws {
        if !service.isRunning { try service.start() }
        let session = try CutSession(service, app, ledger, answersAll: true)
        defer { session.close() }
        let end = MonotonicClock.now + Self.patience
        while true {
            let left = try session.left() + leftBehind()
            if left.isEmpty { break }
            guard MonotonicClock.now < end else {
                let room = try freeBytes()
                return stuck = left.map { "\(ledger.place), \(Self.patience) later, \(room) bytes free: \($0)" }
            }
            _ = try session.changes.hears(within: Self.lookAgain)
        }
        try ledger.checkEnded()
        for id in ledger.ids { unlink(ledger.path(of: id)) }
        // Else the next power cut brings them back, and in time there is no room for others.
        try PlainFile.syncFolder(assets)
        ledger.forgetAll()
        unfinished = 0
    }

    /// Files of which nobody has any use: what was interrupted leaves nothing behind.
    private func leftBehind() -> [String] {
        ["Transfers", "\(container)/Library/Caches/.BackgroundAssets"].flatMap { folder in
            PlainFile.names(in: "\(root)/\(folder)").map { "\(folder)/\($0)" }
        }
    }

    private func freeBytes() throws -> Int {
        var status = statvfs()
        try check("statvfs") { statvfs(root, &status) }
        return Int(status.f_bavail) * Int(status.f_frsize)
    }
}
