// The power fails at random moments: what an app was told of is there afterwards, and everything goes on.
import AssetsOS
import DevelopmentServer
import FixturePlan
import Foundation
import PowerCut
import RootHelperClient
import Testing

@Suite struct PowercutTests {
    /// `make bench BENCH=powercut` has a thousand.
    private static let cycles = 20

    @Test(
        "After a power cut every file that a callback has named is there and right, nothing is lost and nothing comes twice",
        .needs(.fileSystems))
    func powerCuts() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let given = ProcessEnvironment.value("BACKGROUNDASSETS_SEED", in: ProcessEnvironment.current)
        let seed = given.flatMap(UInt64.init) ?? .random(in: 1...999_999)
        print("power cuts: BACKGROUNDASSETS_SEED=\(seed) repeats their choices")

        let disk = try await blocking {
            try HelperFileSystem(.init(bytes: PowerCutTrial.diskBytes, hasWriteCache: true))
        }
        defer { disk.remove() }
        let root = PowerCutTrial.root(on: disk)
        try Files.makeFolder(root)
        chmod(root, 0o700)
        let server = try await TestServer.start(in: folder.path + "/www", authority: root + "/DevelopmentCA")
        let files = try ServedFiles(in: server.folder, baseURL: server.url)
        let bundle = FixtureBundle(manifestURL: try server.put("manifest.json", FixturePlan().encoded()))
        let app = PowerCutApp(
            identifier: bundle.identifier, group: bundle.group, bundle: try bundle.write(to: folder.path))
        let programs = PowerCutPrograms(
            service: Products.service, launcher: Products.launcher, folder: folder.path)
        let outcome = try await blocking {
            try PowerCutTrial(app, files: files, programs: programs, disk: disk, seed: seed).run(cycles: Self.cycles)
        }
        await server.stop()
        #expect(outcome.wrong == [])
        #expect(outcome.lost == [])
        #expect(outcome.doubled == [])
        // Else nothing was shown.
        #expect(outcome.checked > 0, "\(outcome)")
    }
}
