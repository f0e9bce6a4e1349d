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
        let scenario = Scenario()
        for seed in UInt64(1)...20 {
            let run = InterruptedRun(scenario, seed: seed)
            try run.run()
            #expect(try scenario.problems(of: run.device) == [], "seed \(seed)")
            print(run.device.loop.noteCount, run.device.tree.calls, run.device.vfs.calls)
        }
    }
    @Test("Killed")
    func kills() throws {
        var count = 0
        let clock = ContinuousClock()
        for (name, make, step) in [
            ("note", { InterruptedRun.Step.note($0) }, 3), ("file", { .file($0) }, 3), ("page", { .page($0) }, 3),
        ] as [(String, (Int) -> InterruptedRun.Step, Int)] {
            for end in [InterruptedRun.End.kill, .powerCut(.forgetsAll), .powerCut(.forgetsSome(seed: 5))] {
                let start = clock.now
                for number in stride(from: 1, through: 400, by: step) {
                    let run = InterruptedRun(Scenario(), seed: 1)
                    do {
                        try run.run([(make(number), end)])
                        let problems = try Scenario().problems(of: run.device)
                        if !problems.isEmpty {
                            count += 1
                            if count < 40 { print("PROBLEM", name, number, end, problems.prefix(3)) }
                        }
                    } catch { print("ERROR", name, number, end, error); count += 1 }
                    if run.device.kills + run.device.powerCuts == 0 { print("steps", name, number); break }
                }
                print("TIME", name, end, clock.now - start)
            }
        }
        #expect(count == 0)
    }
}
