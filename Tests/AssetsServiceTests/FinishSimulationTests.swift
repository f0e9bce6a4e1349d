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
}
