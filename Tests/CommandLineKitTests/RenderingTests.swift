import CommandLineKit
import Foundation
import Testing

@Suite("Numbers, times and foreign text")
struct FormatTests {
    @Test(
        "Bytes are shown with the digits that matter",
        arguments: [
            (0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 kB"), (1449, "1.4 kB"), (9999, "10.0 kB"),
            (10_000, "10 kB"), (999_499, "999 kB"), (999_500, "1.0 MB"), (61_000_000, "61 MB"),
            (999_999_999, "1.00 GB"), (2_350_000_000, "2.35 GB"), (9_007_000_000, "9.01 GB"),
            (12_340_000_000, "12.3 GB"),
            (123_400_000_000, "123 GB"), (Int64.max, "9.22 EB"), (-5, "0 bytes"), (Int64.min, "0 bytes"),
        ])
    func bytes(count: Int64, text: String) {
        #expect(Format.bytes(count) == text)
    }

    @Test(
        "Durations are shown in the units people use",
        arguments: [
            (Duration.zero, "0.0 s"), (.milliseconds(-3), "0.0 s"), (.milliseconds(12_349), "12.3 s"),
            (.seconds(125), "2 min 05 s"), (.seconds(11_040), "3 h 04 min"), (.seconds(439_200), "5 d 02 h"),
        ])
    func durations(duration: Duration, text: String) {
        #expect(Format.duration(duration) == text)
    }

    @Test("A remaining time looks like a clock")
    func clock() {
        #expect(Format.clock(.seconds(7)) == "0:07")
        #expect(Format.clock(.seconds(750)) == "12:30")
        #expect(Format.clock(.seconds(3720)) == "1:02:00")
    }

    @Test("A date of zero, of nonsense or beyond all calendars is a dash", arguments: [0, -1, .nan, .infinity, 1e300])
    func noDate(seconds: Double) {
        #expect(Format.date(seconds) == "-")
    }

    @Test("A date has a fixed form")
    func date() throws {
        #expect(try /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.wholeMatch(in: Format.date(1_795_233_544.7)) != nil)
    }

    @Test("Text from elsewhere cannot steer the terminal")
    func printable() {
        #expect(TerminalText.printable("Grüße 日本") == "Grüße 日本")
        #expect(
            TerminalText.printable("a\u{1B}[2Jb\r\n\u{9B}c\u{202E}d") == "a\\u{1B}[2Jb\\u{D}\\u{A}\\u{9B}c\\u{202E}d")
    }

    @Test("Width counts columns, not characters")
    func width() {
        #expect(TerminalText.width("e\u{301}a") == 2)
        #expect(TerminalText.width("日本") == 4)
        #expect(TerminalText.shortened("日本語です", to: 6) == "日本…")
        #expect(TerminalText.shortened("short", to: 5) == "short")
        #expect(TerminalText.shortened("short", to: 0) == "")
    }
}

@Suite("Tables")
struct TableTests {
    private func table() -> Table {
        var table = Table([.init("NAME"), .init("SIZE", .right), .init("REASON")])
        table.add(["日本", "5 MB", ""])
        table.add(["long\u{1B}name", "812 bytes", "backoff: the server answered 503"])
        return table
    }

    @Test("Columns line up and no line ends in spaces")
    func lines() {
        #expect(
            table().lines()
                == [
                    "NAME                 SIZE  REASON",
                    "日本                 5 MB",
                    "long\\u{1B}name  812 bytes  backoff: the server answered 503",
                ])
    }

    @Test("Only the last column is shortened to a terminal's width", arguments: 33...70)
    func width(columns: Int) {
        let lines = table().lines(width: columns)
        #expect(lines.allSatisfy { TerminalText.width($0) <= columns })
        #expect(lines[2].hasPrefix("long\\u{1B}name  812 bytes  back"))
    }

    @Test("A terminal too narrow for the columns loses nothing")
    func narrow() {
        #expect(table().lines(width: 20) == table().lines())
    }
}

@Suite("Progress")
struct ProgressTests {
    private let start = Duration.seconds(100)

    /// What a terminal shows after these bytes: only what our bar uses.
    private func shown(_ bytes: String) -> String {
        var line: [Character] = []
        var column = 0
        var rest = bytes[...]
        while let character = rest.popFirst() {
            if character == "\r" {
                column = 0
            } else if character == "\u{1B}" {
                #expect(rest.hasPrefix("[K"))
                rest = rest.dropFirst(2)
                line.removeSubrange(column...)
            } else {
                if column < line.count { line[column] = character } else { line.append(character) }
                column += 1
            }
        }
        return String(line)
    }

    @Test("One line is drawn over and over, and taken away without a trace")
    func bar() {
        var bar = ProgressLine()
        var bytes = bar.show(Progress(phase: "unpacking", fraction: 0.1), at: start, on: .terminal(width: 80))
        #expect(shown(bytes) == "unpacking  [###------------------------------------]   10 %")
        bytes += bar.show(
            Progress(phase: "essential assets", fraction: 0.5, received: 30_500_000, expected: 61_000_000),
            at: start + .seconds(1), on: .terminal(width: 80))
        #expect(shown(bytes) == "essential assets  [##################------------------]   50 %  31 MB of 61 MB")
        bytes += bar.clear()
        #expect(shown(bytes) == "")
        #expect(!bytes.contains("\n"))
        #expect(bar.clear() == "")
    }

    @Test("The bar never reaches the last column, whatever the width", arguments: 1...140)
    func widths(columns: Int) {
        var bar = ProgressLine()
        var bytes = ""
        for second in 0..<10 {
            bytes += bar.show(
                Progress(
                    phase: "essential assets", fraction: Double(second) / 9, received: Int64(second) * 12_345_678,
                    expected: 111_111_102, note: "waiting for the network"),
                at: start + .seconds(second), on: .terminal(width: columns))
            #expect(shown(bytes).count <= max(1, columns - 1))
        }
    }

    @Test("A terminal sees speed and remaining time once they are known, and what is waited for while nothing moves")
    func speed() {
        var bar = ProgressLine()
        var bytes = ""
        for second in 0...4 {
            bytes += bar.show(
                Progress(
                    phase: "essential assets", fraction: 0.1 * Double(second), received: Int64(second) * 10_000_000,
                    expected: 100_000_000), at: start + .seconds(second), on: .terminal(width: 100))
        }
        #expect(shown(bytes).hasSuffix("40 MB of 100 MB  10 MB/s  0:06 left"))
        bytes += bar.show(
            Progress(
                phase: "essential assets", fraction: 0.41, received: 40_000_000, expected: 100_000_000,
                note: "waiting for the network"), at: start + .seconds(30), on: .terminal(width: 100))
        #expect(shown(bytes).hasSuffix("40 MB of 100 MB  waiting for the network"))
    }

    @Test("Redrawing is limited, but a new phase is shown at once")
    func limits() {
        var bar = ProgressLine()
        let surface = ProgressLine.Surface.terminal(width: 80)
        #expect(bar.show(Progress(phase: "a", fraction: 0.1), at: start, on: surface) != "")
        #expect(bar.show(Progress(phase: "a", fraction: 0.2), at: start + .milliseconds(99), on: surface) == "")
        #expect(bar.show(Progress(phase: "b", fraction: 0.2), at: start + .milliseconds(99), on: surface) != "")
        #expect(bar.show(Progress(phase: "b", fraction: 0.2), at: start + .seconds(5), on: surface) == "")
        #expect(bar.show(Progress(phase: "b", fraction: 0.3), at: start + .seconds(6), on: surface) != "")
    }

    @Test("Off a terminal there is at most one plain line a second for each phase")
    func plain() {
        var bar = ProgressLine()
        var text = ""
        for tenth in 0..<30 {
            text += bar.show(
                Progress(
                    phase: tenth < 15 ? "manifest" : "essential assets", fraction: Double(tenth) / 30,
                    received: Int64(tenth) * 1000, expected: 30_000),
                at: start + .milliseconds(100 * tenth), on: .plain)
        }
        #expect(
            text == """
                manifest: 0 %, 0 bytes of 30 kB
                manifest: 33 %, 10 kB of 30 kB
                essential assets: 50 %, 15 kB of 30 kB
                essential assets: 83 %, 25 kB of 30 kB

                """)
        #expect(bar.clear() == "")
    }

    @Test("A fraction that is no number, and names with control characters, do no harm")
    func hostile() {
        var bar = ProgressLine()
        let bytes = bar.show(
            Progress(phase: "a\u{1B}[2J", fraction: .nan, received: .min, expected: -1, note: "\n"), at: start,
            on: .terminal(width: 60))
        #expect(shown(bytes).hasPrefix("a\\u{1B}[2J  [-----"))
        #expect(bytes.filter { $0 == "\u{1B}" }.count == 1)
    }
}

@Suite("Console")
struct ConsoleTests {
    private struct Value: Encodable {
        var path = "/tmp/ä"
        var count = 3
        var share = Double.nan
    }

    @Test("Data goes to one stream, talk and progress to the other, JSON is one sorted line")
    func streams() throws {
        let folder = try TemporaryFolder()
        let output = folder.url.appending(path: "output")
        let error = folder.url.appending(path: "error")
        try Data().write(to: output)
        try Data().write(to: error)
        let outputHandle = try FileHandle(forWritingTo: output)
        let errorHandle = try FileHandle(forWritingTo: error)
        let console = Console(
            printsJSON: true, output: outputHandle.fileDescriptor, error: errorHandle.fileDescriptor)
        console.show(Progress(phase: "unpacking", fraction: 0.5))
        console.data(json: Value())
        console.say("hello")
        console.say(failure: Failure(code: 1006, "the gate is shut", remedy: "wait", status: 1), from: "kitchen")
        console.endProgress()
        #expect(try String(contentsOf: output, encoding: .utf8) == #"{"count":3,"path":"/tmp/ä","share":"nan"}"# + "\n")
        #expect(
            try String(contentsOf: error, encoding: .utf8) == """
                unpacking: 50 %
                hello
                {"code":1006,"reason":"the gate is shut","remedy":"wait"}

                """)
        #expect(console.dataWidth == nil)
    }
}
