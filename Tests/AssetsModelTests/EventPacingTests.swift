// When events of a session go out.
import Testing

@testable import AssetsModel

@Suite struct EventPacingTests {
    private let time = PolicyNumbers.reportTime

    @Test("The first report goes out at once, and so does one after a while")
    func alone() {
        var pacing = EventPacing()
        #expect(pacing.deadline(isAnswered: false, at: .seconds(5)) == nil)
        pacing.sent(at: .seconds(5))
        #expect(pacing.deadline(isAnswered: false, at: .seconds(5) + time) == nil)
    }

    @Test("Reports that follow each other wait for the same moment")
    func together() {
        var pacing = EventPacing()
        pacing.sent(at: .seconds(5))
        for wait in [Duration.zero, .nanoseconds(1), time - .nanoseconds(1)] {
            #expect(pacing.deadline(isAnswered: false, at: .seconds(5) + wait) == .seconds(5) + time)
        }
    }

    @Test("What somebody waits for never waits")
    func answered() {
        var pacing = EventPacing()
        pacing.sent(at: .seconds(5))
        #expect(pacing.deadline(isAnswered: true, at: .seconds(5)) == nil)
    }

    @Test("No report waits longer than the limit, whatever was told when")
    func limit() {
        var pacing = EventPacing()
        var random = SplitMix(seed: 7)
        var now = Duration.seconds(1)
        for _ in 0..<1000 {
            now += .microseconds(Int.random(in: 0..<10_000, using: &random))
            guard let end = pacing.deadline(isAnswered: Bool.random(using: &random), at: now) else {
                pacing.sent(at: now)
                continue
            }
            #expect(end > now && end <= now + time)
            now = end
            #expect(pacing.deadline(isAnswered: false, at: now) == nil)
            pacing.sent(at: now)
        }
    }
}
