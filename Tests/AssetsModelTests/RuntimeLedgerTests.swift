import AssetsModel
import Testing

@Suite("Runtime of extensions")
struct RuntimeLedgerTests {
    private static let budget = Duration.seconds(300)
    private static let start = Duration.seconds(1_800_000_000)
    private static let hour = Duration.seconds(3600)

    @Test("What is used is missing from the budget for a day, and is there again after it")
    func day() {
        var ledger = RuntimeLedger()
        #expect(ledger.remaining(of: Self.budget, at: Self.start) == Self.budget)
        ledger.charge(.seconds(100), at: Self.start)
        ledger.charge(.milliseconds(1500), at: Self.start + Self.hour)
        #expect(ledger.used(at: Self.start + Self.hour) == .milliseconds(101_500))
        #expect(ledger.remaining(of: Self.budget, at: Self.start + Self.hour) == .milliseconds(198_500))
        #expect(ledger.used(at: Self.start + Self.hour * 24) == .milliseconds(101_500))
        // No more than a step is lost by counting in steps.
        #expect(ledger.used(at: Self.start + Self.hour * 24 + PolicyNumbers.runtimeStep) == .milliseconds(1500))
        #expect(ledger.used(at: Self.start + Self.hour * 25 + PolicyNumbers.runtimeStep) == .zero)
    }

    @Test("A spent budget says when something of it is there again, and then it is")
    func waiting() {
        var ledger = RuntimeLedger()
        #expect(ledger.wait(for: Self.budget, at: Self.start) == .zero)
        ledger.charge(.seconds(200), at: Self.start)
        ledger.charge(.seconds(200), at: Self.start + Self.hour)
        let now = Self.start + Self.hour * 2
        #expect(ledger.remaining(of: Self.budget, at: now) == .zero)
        let wait = ledger.wait(for: Self.budget, at: now)
        #expect(wait > Self.hour * 22 && wait <= Self.hour * 22 + PolicyNumbers.runtimeStep)
        #expect(ledger.remaining(of: Self.budget, at: now + wait - .microseconds(1)) == .zero)
        #expect(ledger.remaining(of: Self.budget, at: now + wait) == .seconds(100))
        #expect(ledger.wait(for: Self.budget, at: now + wait) == .zero)
    }

    @Test("A budget of nothing is always spent")
    func nothing() {
        var ledger = RuntimeLedger()
        #expect(ledger.wait(for: .zero, at: Self.start) > .zero)
    }

    @Test("A clock that is set back neither frees nor blocks anything")
    func clockBack() {
        var ledger = RuntimeLedger()
        ledger.charge(.seconds(300), at: Self.start)
        // A year back: nothing of the past day is forgotten.
        let back = Self.start - Self.hour * 24 * 365
        #expect(ledger.remaining(of: Self.budget, at: back) == .zero)
        #expect(ledger.remaining(of: Self.budget, at: back + Self.hour * 23) == .zero)
        // The ledger's day goes on from there.
        #expect(ledger.remaining(of: Self.budget, at: back + Self.hour * 24 + PolicyNumbers.runtimeStep) == Self.budget)
        // And a clock that was wrong for a while takes nothing with it.
        ledger.charge(.seconds(10), at: back + Self.hour * 25)
        #expect(ledger.used(at: back + Self.hour * 26) == .seconds(10))
    }

    @Test("A simulated event begins a new day")
    func reset() {
        var ledger = RuntimeLedger()
        ledger.charge(.seconds(900), at: Self.start)
        ledger.reset()
        #expect(ledger.remaining(of: Self.budget, at: Self.start) == Self.budget)
    }

    @Test("Against every use written down, for random days", arguments: UInt64(1)...20)
    func model(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var ledger = RuntimeLedger()
        var uses: [(at: Duration, length: Duration)] = []
        var now = Self.start
        for _ in 0..<500 {
            now += .seconds(Int.random(in: 0...4000, using: &random))
            let length = Duration.milliseconds(Int.random(in: 0...30_000, using: &random))
            ledger.charge(length, at: now)
            uses.append((now, length))
            let used = ledger.used(at: now)
            func sum(since time: Duration) -> Duration {
                uses.filter { $0.at > time }.reduce(.zero) { $0 + $1.length }
            }
            let day = PolicyNumbers.runtimeWindow
            #expect(used >= sum(since: now - day) && used <= sum(since: now - day - PolicyNumbers.runtimeStep * 2))
        }
    }

    @Test("A busy year is still a short list")
    func length() {
        var ledger = RuntimeLedger()
        for minute in 0..<(366 * 1440) { ledger.charge(.seconds(1), at: Self.start + .seconds(60 * minute)) }
        #expect(ledger.length == 145)
    }

    @Test(
        "The budget follows how much the app is used",
        arguments: [
            (AppUsage.new, Duration.seconds(300)), (.unused, .seconds(30)), (.used(days: 30), .seconds(600)),
            (.used(days: 15), .seconds(450)), (.used(days: 1), .seconds(310)), (.used(days: 99), .seconds(600)),
            (.used(days: 0), .seconds(310)),
        ])
    func budgets(usage: AppUsage, expected: Duration) {
        #expect(usage.runtime == expected)
    }
}
