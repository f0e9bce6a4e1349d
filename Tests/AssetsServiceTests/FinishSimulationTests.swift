// Finishes that the disk does not take, and cancels in the middle of them.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated finishes")
struct FinishSimulationTests {
    private static let id = "00000000-0000-4000-8000-000000000001"

    /// A device whose app is installed and has nothing to fetch.
    private func device(seed: UInt64 = 1) throws -> SimulatedDevice {
        var scenario = Scenario()
        scenario.assets = []
        let device = scenario.device(seed: seed)
        try device.installAndSettle(scenario)
        return device
    }

    private func schedule(_ name: String, id: String = Self.id, on device: SimulatedDevice) throws {
        let url = "https://cdn.example.com/\(name)"
        device.server.set(url, ScriptedResource(.generated(length: 5000, seed: 1)))
        let request = DownloadRequest(
            identifier: name, uniqueIdentifier: id, url: url, group: Scenario.group, size: 5000)
        _ = try device.call { try await $0.schedule(request, for: Scenario.app) }
    }

    // MARK: What the disk does not take

    /// Kills the service when it moves a file, and puts a file where that file's folder was. Answers its path.
    private func killInFinish(_ device: SimulatedDevice) throws -> String {
        let isMoving = Guarded(false)
        device.tree.setFault { call in
            guard call.name == "rename", call.path.hasSuffix(".partial") else { return nil }
            isMoving.withLock { $0 = true }
            return 5
        }
        try device.loop.run(until: { isMoving.withLock { $0 } })
        device.tree.setFault(nil)
        device.kill()
        let folder = "\(device.caches)/\(try #require(try device.tree.list(device.caches).last))"
        try device.tree.remove(folder)
        try device.tree.replace(folder, with: [1], mode: 0o600)
        return folder
    }

    @Test("A service starts although a file cannot be moved to its place, and moves it when it can")
    func obstacle() throws {
        let device = try device()
        try schedule("stuck", on: device)
        let folder = try killInFinish(device)
        try device.start()
        try schedule("other", id: "00000000-0000-4000-8000-000000000002", on: device)
        try device.loop.advance(by: .seconds(100))
        #expect(device.messages(of: "other").map(\.outcome) == [.handled])
        #expect(device.messages(of: "stuck") == [] && device.inspect { $0.isBusy } == true)
        // A service that is told to stop leaves it to the next one.
        try device.restart()
        try device.tree.remove(folder)
        try device.settle()
        #expect(device.messages(of: "stuck").map(\.outcome) == [.handled])
        #expect(device.moved("stuck") == device.server.content(of: "https://cdn.example.com/stuck"))
        #expect(device.server.log(of: "https://cdn.example.com/stuck").count == 1)
        #expect(try device.query { try $0.downloads(limit: 10) } == [])
    }

    @Test("A file that could not be moved when the service started can be cancelled, and leaves nothing")
    func cancelledObstacle() throws {
        let device = try device()
        try schedule("stuck", on: device)
        let folder = try killInFinish(device)
        try device.start()
        try device.call { try await $0.cancel(id: Self.id, app: Scenario.app) }
        try device.settle()
        #expect(try device.tree.list("Transfers") == [])
        #expect(try device.tree.list(device.caches).map { "\(device.caches)/\($0)" } == [folder])
        #expect(try device.query { (try $0.downloads(limit: 10).count, try $0.intents().count) } == (0, 0))
        #expect(device.messages(of: "stuck") == [])
    }

    @Test("The gate waits for an essential file that could not be moved when the service started")
    func essentialObstacle() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 1)
        try device.start()
        _ = try device.install(scenario.source)
        try device.wait(for: .essential, of: Scenario.app)
        let folder = try killInFinish(device)
        try device.start()
        try device.loop.advance(by: .seconds(100))
        #expect(device.inspect { $0.installedApps().map(\.gate) } == [.shut])
        try device.tree.remove(folder)
        try device.settle()
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    // MARK: Cancels

    /// Runs so many jobs; false when all is at rest before.
    private func advance(jobs: Int, on device: SimulatedDevice) throws -> Bool {
        var done = -1
        try device.loop.run(until: {
            done += 1
            return done == jobs || device.inspect { !$0.isBusy } == true
        })
        return done == jobs
    }

    /// Begins to cancel a download; answers whether that was done, once it is known.
    private func cancel(_ id: String, on device: SimulatedDevice) -> () -> Bool? {
        let isDone = Guarded<Bool?>(nil)
        device.spawn { service, _ in
            let wasDone = (try? await service.cancel(id: id, app: Scenario.app)) != nil
            isDone.withLock { $0 = wasDone }
        }
        return { isDone.withLock { $0 } }
    }

    /// Cancels a download after so many jobs, and more each time, until there is nothing to do any more. `begin` answers its id;
    /// `check` is told whether it was cancelled.
    private func sweep(
        failing: Bool = false, every width: Int, _ begin: () throws -> (SimulatedDevice, String),
        _ check: (SimulatedDevice, _ isCancelled: Bool, _ jobs: Int) throws -> Void
    ) throws {
        var (jobs, cancelled) = (0, 0)
        while true {
            let (device, id) = try begin()
            guard try advance(jobs: jobs, on: device) else { break }
            let answer = cancel(id, on: device)
            if failing { device.vfs.setFault(.fails(call: device.vfs.calls + 1)) }
            try device.loop.run(until: { answer() != nil })
            device.vfs.setFault(nil)
            try device.settle()
            try check(device, answer() == true, jobs)
            cancelled += answer() == true ? 1 : 0
            jobs += width
        }
        #expect(jobs > 300 && (failing || width * cancelled > 100), "\(cancelled) cancelled within \(jobs) jobs")
    }

    @Test("A download is either cancelled or told of, whenever it is cancelled", arguments: [false, true])
    func cancelled(failing: Bool) throws {
        try sweep(failing: failing, every: failing ? 3 : 2) {
            let device = try device()
            for number in 1...6 {
                try schedule("m\(number)", id: String(Self.id.dropLast()) + "\(number)", on: device)
            }
            return (device, String(Self.id.dropLast()) + "3")
        } _: { device, isCancelled, jobs in
            let outcomes = device.messages(of: "m3").map(\.outcome)
            #expect(outcomes == (isCancelled ? [] : [.handled]), "after \(jobs) jobs")
            #expect((device.moved("m3") == nil) == isCancelled, "after \(jobs) jobs")
            #expect(device.extensions.problems == [], "after \(jobs) jobs")
            let left = try device.query { ((try $0.downloads(limit: 10)).count, try $0.intents().count) }
            #expect(left == (0, 0), "after \(jobs) jobs")
            let folders = ["Transfers", device.caches].flatMap { (try? device.tree.list($0)) ?? [] }
            #expect(folders == [], "after \(jobs) jobs")
        }
    }

    @Test("An essential download that is cancelled while it ends counts once: the gate waits for all others")
    func cancelledEssential() throws {
        var scenario = Scenario()
        scenario.assets = (0..<6).map { Scenario.Asset(identifier: "e\($0)", length: 100 + $0, isEssential: true) }
        scenario.assets[5].bytesPerSecond = 20
        try sweep(every: 3) {
            let device = scenario.device(seed: 1)
            try device.start()
            _ = try device.install(scenario.source)
            try device.wait(for: .essential, of: Scenario.app)
            try device.loop.run(until: { !device.server.log(of: scenario.assets[5].url).isEmpty })
            let records = try device.query { try $0.downloads(limit: 10) }
            return (device, try #require(records.first { $0.request.identifier == "e3" }).id)
        } _: { device, isCancelled, jobs in
            let rows = try device.journal()
            let opened = try #require(rows.firstIndex { $0.event == .gateOpened })
            let last = try #require(
                rows.firstIndex { $0.event == .downloadFinished && $0.detail.hasPrefix("e5") })
            #expect(last < opened, "after \(jobs) jobs")
            #expect(device.messages(of: "e3").isEmpty == isCancelled, "after \(jobs) jobs")
        }
    }
}
