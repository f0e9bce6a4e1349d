// What a bench is, and the runner that all of them share.
internal import AssetsOS
internal import CommandLineKit
internal import Glibc

/// Something that is measured, with its peers, in one run.
package protocol Bench {
    var name: String { get }
    /// One line for `--list`.
    var summary: String { get }
    /// Measures; throws when it cannot. Whether targets are met does not matter here.
    func measure(until deadline: Deadline) throws -> [Figure]
}

/// Why there is no figure.
package struct BenchError: Error, CustomStringConvertible {
    package var description: String
    /// Whether what is missing is something that only root can make: then the bench is left out and has not failed.
    package var isSkip = false

    package init(_ description: String) { self.description = description }

    package static func skip(_ reason: String) -> BenchError {
        var error = BenchError(reason)
        error.isSkip = true
        return error
    }
}

/// When a bench has to be done.
package struct Deadline: Sendable {
    private let end: Duration
    package init(in time: Duration) { end = MonotonicClock.now + time }
    package var left: Duration { max(.zero, end - MonotonicClock.now) }
    package var hasPassed: Bool { left == .zero }
}

/// The command line: names of benches, or a question.
package struct BenchRunner {
    /// A bench with its peers takes no longer.
    package static let benchMax = Duration.seconds(600)

    private enum Status {
        static let done: Int32 = 0
        static let failed: Int32 = 1
        static let usage: Int32 = 64
    }

    private let benches: [any Bench]

    package init(_ benches: [any Bench]) { self.benches = benches }

    /// Returns the exit status.
    package func run(_ arguments: [String]) -> Int32 {
        if arguments.contains("--help") || arguments.contains("-h") {
            print(help)
            return Status.done
        }
        if arguments.contains("--list") {
            for bench in benches { print("\(bench.name)\t\(bench.summary)") }
            return Status.done
        }
        let named = arguments.filter { !$0.isEmpty }
        for name in named where !names.contains(name) {
            Self.say("there is no bench '\(name)'; there are: \(names.joined(separator: ", "))")
            return Status.usage
        }
        var status = Status.done
        for bench in benches where named.isEmpty || named.contains(bench.name) {
            if !run(bench) { status = Status.failed }
        }
        return status
    }

    private var names: [String] { benches.map(\.name) }

    /// False when it has failed.
    private func run(_ bench: any Bench) -> Bool {
        let start = MonotonicClock.now
        Self.say("\(bench.name): \(bench.summary)")
        do {
            let figures = try bench.measure(until: Deadline(in: Self.benchMax))
            let lines = try figures.map { try $0.jsonLine() }
            for line in FigureTable.lines(figures) { Self.say(line) }
            for line in lines { print(line) }
            fflush(nil)
            Self.say("\(bench.name): measured in \(Format.duration(MonotonicClock.now - start))")
            return true
        } catch let error as BenchError where error.isSkip {
            Self.say("\n*** \(bench.name): NOT RUN, \(error) ***\n")
            return true
        } catch {
            Self.say("\(bench.name): could not be measured: \(error)")
            return false
        }
    }

    private var help: String {
        """
        usage: make bench [BENCH=name]

        Measures this build against its peers. Prints a table on standard error and one JSON object a line on
        standard output: bench, figure, value, unit, peer, target, ok. Exits 0 when it could measure, whatever came
        out; a bench that needs root and has none is left out, and says so. See docs/benchmarks.md.

          --list   the benches
          --help   this text
        """
    }

    /// A line for people: standard output is for figures.
    package static func say(_ line: String) {
        let text = line + "\n"
        _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }
}

/// Figures for people.
package enum FigureTable {
    package static func lines(_ figures: [Figure]) -> [String] {
        var table = CommandLineKit.Table([
            .init("BENCH"), .init("FIGURE"), .init("VALUE", .right), .init("UNIT"), .init("PEER"),
            .init("TARGET", .right), .init("OK"),
        ])
        for figure in figures {
            table.add([
                figure.bench, figure.name, number(figure.shownValue), figure.unit, figure.peer ?? "",
                figure.target.map(shown) ?? "", figure.isOK.map { $0 ? "ok" : "MISSED" } ?? "",
            ])
        }
        return table.lines()
    }

    private static func shown(_ target: Target) -> String {
        switch target {
        case .atMost(let limit): "<= \(number(limit))"
        case .atLeast(let limit): ">= \(number(limit))"
        }
    }

    private static func number(_ value: Double) -> String {
        // Whole numbers without ".0"; those beyond 2^53 are none any more.
        if value.rounded() == value, abs(value) < 9e15 { return "\(Int64(value))" }
        if abs(value) >= 100 { return "\((value * 10).rounded() / 10)" }
        return "\((value * 1000).rounded() / 1000)"
    }
}
