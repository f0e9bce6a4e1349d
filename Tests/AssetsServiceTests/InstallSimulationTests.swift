// The path of an installation, on simulated disk, network, extension and time.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Glibc
import Testing

@Suite("Simulated installation")
struct InstallSimulationTests {
    @Test("An installation ends with every file at its place")
    func install() throws {
        let device = try Scenario().installed(seed: 1)
        for line in device.loop.trace { print(line) }
        print(device.loop.hash)
    }
}
