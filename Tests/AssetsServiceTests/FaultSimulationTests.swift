import AssetsModel
import AssetsOS
import BackgroundAssetsTesting
import DevelopmentServer
import Testing

@Suite("Faults of the catalogue in simulations")
struct FaultSimulationTests {
    @Test(
        "A scripted server has the faults of the real one under their names",
        arguments: [
            "503", "429@7", "captive-portal", "close@10000", "reset@10000", "drop", "refuse", "hang", "rate@10000",
            "wait@1",
            "slow-head@1", "noranges", "if-range-etag", "range-shift", "weak-etag", "date-only", "no-validator",
            "digest",
            "wrong-digest", "wrong-checksum",
        ])
    func each(fault: String) throws {
        var scenario = Scenario()
        scenario.assets = [.init(identifier: "a", length: 30_000, isEssential: false)]
        let asset = scenario.assets[0]
        let device = scenario.device(seed: 1)
        var resource = ScriptedResource(
            .generated(length: asset.length, seed: 0), bytesPerSecond: 20_000, answers: [.cut(after: 20_000)])
        #expect(resource.takeOn(try FaultRule(parsing: "a:" + fault).action))
        device.server.set(asset.url, resource)
        try device.installAndSettle(scenario)
        if ["hang", "wrong-digest", "wrong-checksum"].contains(fault) {
            #expect(device.messages(of: "a").map(\.kind) == [.failed])
        } else {
            #expect(device.moved("a") == device.server.content(of: asset.url))
        }
        #expect(device.server.log(of: asset.url).count > 1 || fault == "wrong-checksum")
    }

    @Test(
        "What lies below the simulated network is refused", arguments: ["chunked", "tls-expired", "garbage", "short"])
    func below(fault: String) throws {
        var resource = ScriptedResource(.bytes([1]))
        #expect(!resource.takeOn(try FaultRule(parsing: "a:" + fault).action))
    }
}
