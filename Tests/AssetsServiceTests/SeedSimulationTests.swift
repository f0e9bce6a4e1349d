// Scenarios, schedules and kills drawn from seeds. `make simulate` tries more of them, and one again.
import AssetsModel
import AssetsOS
import AssetsService
import BackgroundAssetsTesting
import Glibc
import Testing

@Suite("Simulated seeds")
struct SeedSimulationTests {
    /// Seeds of an ordinary test run; some 15 ms each.
    private static let seedsDefault: UInt64 = 300
    /// Problems that are shown: the first ones are enough to look at.
    private static let problemsMax = 10

    /// `SIMULATED_SEED` names the one seed to run and shows its history; `SIMULATED_SEEDS` says how many, or which
    /// (`first-last`).
    private static func seeds() throws -> ClosedRange<UInt64> {
        if let one = variable("SIMULATED_SEED") {
            let seed = try #require(UInt64(one), "SIMULATED_SEED is no number: \(one)")
            return seed...seed
        }
        guard let text = variable("SIMULATED_SEEDS") else { return 1...seedsDefault }
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        let first = ends.count == 2 ? ends[0] : 1
        let last = try #require(ends.last, "SIMULATED_SEEDS is neither a number nor first-last: \(text)")
        try #require(first <= last && last - first < UInt64(UInt32.max), "SIMULATED_SEEDS is no range: \(text)")
        return first...last
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// What is wrong at the end of one seed's history.
    private func problems(seed: UInt64, showsHistory: Bool) -> [String] {
        let scenario = Scenario.random(seed)
        let interruptions = InterruptedRun.interruptions(seed)
        let run = InterruptedRun(scenario, seed: seed)
        var found: [String] = []
        do {
            try run.run(interruptions)
            found = try scenario.problems(of: run.device)
        } catch { found = ["\(error)"] }
        if showsHistory {
            print("\(scenario)\ninterrupted: \(interruptions)")
            for line in run.device.loop.trace { print(line) }
            print("hash: \(String(run.device.loop.hash, radix: 16))")
        }
        return found
    }

    @Test("Whatever the servers, the extension and the power do, the device ends as it must")
    func seeds() throws {
        let seeds = try Self.seeds()
        var bad = 0
        for seed in seeds where bad < Self.problemsMax {
            let found = problems(seed: seed, showsHistory: seeds.count == 1)
            #expect(found == [], "replay with: make simulate ARGUMENTS=\"--seed \(seed)\"")
            if found != [] { bad += 1 }
        }
    }
}
