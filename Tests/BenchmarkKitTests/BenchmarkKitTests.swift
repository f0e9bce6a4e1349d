// The harness's own arithmetic: a wrong median would make every figure wrong.
import BenchmarkKit
import Foundation
import Testing

@Suite("Benchmark harness")
struct BenchmarkKitTests {
    @Test("The median is the middle value, or the mean of the two in the middle")
    func median() {
        #expect(Sample([7]).median == 7)
        #expect(Sample([9, 1, 5]).median == 5)
        #expect(Sample([4, 1, 3, 100]).median == 3.5)
    }

    @Test(
        "A percentile is the smallest value that so many do not exceed",
        arguments: [(0.0, 1.0), (1, 1), (50, 50), (99, 99), (99.5, 100), (100, 100)])
    func percentile(percent: Double, value: Double) {
        #expect(Sample((1...100).reversed().map(Double.init)).percentile(percent) == value)
    }

    @Test("Rounds go there and back again")
    func order() {
        #expect(Contest.order(of: 3, inRound: 0) == [0, 1, 2])
        #expect(Contest.order(of: 3, inRound: 1) == [2, 1, 0])
        #expect(Contest.order(of: 2, inRound: 2) == [0, 1])
    }

    @Test("A contest leaves the first round out and measures everybody equally often")
    func contest() throws {
        var calls: [String] = []
        let contenders = ["a", "b"].map { name in
            Contender(name) {
                calls.append(name)
                return Double(calls.count)
            }
        }
        let samples = try Contest.run(contenders, rounds: 5, deadline: Deadline(in: .seconds(60)))
        #expect(calls.joined() == "ab" + "abbaabbaab")
        #expect(samples.map(\.count) == [5, 5])
        #expect(samples[0].smallest == 3)
        #expect(samples[1].largest == 12)
    }

    @Test("A contest without time for five rounds is an error")
    func noTime() {
        let contender = Contender("a") { 1 }
        #expect(throws: BenchError.self) {
            try Contest.run([contender], rounds: 5, deadline: Deadline(in: .zero))
        }
    }

    @Test("A line of JSON tells bench, figure, value, unit, peer, target and verdict")
    func json() throws {
        var figure = Figure(
            bench: "launchable", name: "wall_ratio", value: 1.08, unit: "x", peer: "curl", target: .atMost(1.15))
        #expect(
            try figure.jsonLine()
                == #"{"bench":"launchable","figure":"wall_ratio","ok":true,"peer":"curl","target":1.15,"unit":"x","value":1.08}"#
        )
        figure.target = nil
        figure.peer = nil
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(try figure.jsonLine().utf8)) as? [String: Any])
        #expect(object["target"] is NSNull)
        #expect(object["ok"] is NSNull)
        #expect(object["peer"] is NSNull)
        figure.value = .infinity
        #expect(throws: (any Error).self) { try figure.jsonLine() }
    }

    @Test("A target is met on its own side only, and judged before rounding")
    func targets() {
        #expect(Target.atMost(2).isMet(by: 2))
        #expect(!Target.atMost(2).isMet(by: 2.1))
        #expect(Target.atLeast(2).isMet(by: 2.1))
        #expect(!Target.atLeast(2).isMet(by: 1.9))
        let figure = Figure(bench: "a", name: "b", value: 1.15001, unit: "x", target: .atMost(1.15))
        #expect(figure.shownValue == 1.15)
        #expect(figure.isOK == false)
    }

    @Test("A missed target stands out in the table")
    func table() {
        let lines = FigureTable.lines([
            Figure(bench: "a", name: "ratio", value: 1.234, unit: "x", peer: "curl", target: .atMost(1)),
            Figure(bench: "a", name: "bytes", value: 200_000_000, unit: "bytes"),
        ])
        #expect(lines.count == 3)
        #expect(lines[1].contains("1.234") && lines[1].contains("<= 1") && lines[1].hasSuffix("MISSED"))
        #expect(lines[2].contains("200000000") && !lines[2].contains("MISSED"))
    }

    @Test("A bench without what it needs of root is left out; one that throws anything else has failed")
    func skip() {
        let (skipped, failing) = (ThrowingBench(error: .skip("no root")), ThrowingBench(error: BenchError("broken")))
        #expect(BenchRunner([skipped]).run([]) == 0)
        #expect(BenchRunner([failing]).run([]) == 1)
        #expect(BenchRunner([failing, skipped]).run([]) == 1)
    }

    @Test("An unknown bench is refused")
    func unknown() {
        #expect(BenchRunner([]).run(["nosuch"]) == 64)
        #expect(BenchRunner([]).run(["--list"]) == 0)
    }
}

/// A bench without figures.
private struct ThrowingBench: Bench {
    let name = "throwing"
    let summary = "throws"
    let error: BenchError

    func measure(until deadline: Deadline) throws -> [Figure] { throw error }
}
