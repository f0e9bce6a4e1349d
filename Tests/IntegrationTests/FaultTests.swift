// Every fault of the catalogue through the service and the tool, and many at once by chance.
import AssetsOS
import DevelopmentServer
import FixturePlan
import Foundation
import Testing

/// All rows in two runs, for the tests of each.
///
/// Downloads in the background stop at once for those in the foreground where a server has too many, and all servers of a
/// test are one host: those that are scheduled have a device of their own.
private actor FaultRun {
    static let shared = FaultRun()
    private var runs: [Bool: Task<[String: FaultResult], any Error>] = [:]

    func result(of row: FaultRow) async throws -> FaultResult {
        let rows = FaultRow.all.filter { $0.isScheduled == row.isScheduled }
        let run = runs[row.isScheduled] ?? Task { try await FaultScene.run(rows.map(Self.file)) }
        runs[row.isScheduled] = run
        return try #require(try await run.value[Self.file(row).name])
    }

    private static func file(_ row: FaultRow) -> FaultyFile {
        let number = FaultRow.all.firstIndex(of: row).map { "\($0)" } ?? "none"
        return FaultyFile(name: "fault-\(number).pack", faults: row.faults, place: row.place)
    }
}

extension FaultRow {
    fileprivate var isScheduled: Bool { place == .alone }
}

@Suite struct FaultTests {
    @Test("Each fault has the diagnosis and the outcome of the table", arguments: FaultRow.all)
    func each(row: FaultRow) async throws {
        let result = try await FaultRun.shared.result(of: row)
        var expected = row.diagnosis[...]
        for said in result.rows {
            // A diagnosis may come again before the next one comes.
            if let next = expected.dropFirst().first, next.fits(said) { expected = expected.dropFirst() }
            #expect(expected.first?.fits(said) == true, "\(said) of \(result)")
        }
        #expect(expected.count <= 1 && result.rows.isEmpty == row.diagnosis.isEmpty, "\(result)")
        switch row.outcome {
        case .whole(let requests, let twice):
            #expect(result.isRight == true && result.failure == nil && result.requests == requests, "\(result)")
            let more = result.sent - Int64(FaultScene.size)
            #expect(more >= 0 && more <= twice, "\(more) bytes were sent twice")
        case .wrong: #expect(result.isRight == false && result.failure == nil, "\(result)")
        case .failed(let code): #expect(result.isRight == nil && result.failure == code, "\(result)")
        }
    }

    @Test("Every fault of the catalogue is in the table", arguments: Fault.allCases)
    func catalogue(fault: Fault) throws {
        #expect(try FaultRow.all.contains { try $0.fault == fault })
    }

    @Test("The tool lists the catalogue, as text and as JSON, and serves nothing without a folder")
    func list() async throws {
        struct Line: Decodable { var fault, summary: String }
        let environment = ["HOME": "/nonexistent"]
        let json = try await Program.run(Products.tool, ["serve", "--list-faults", "--json"], environment: environment)
        #expect(try json.values(Line.self).map(\.fault) == Fault.allCases.map(\.form))
        #expect(try json.values(Line.self).map(\.summary) == Fault.allCases.map(\.summary))
        let text = try await Program.run(Products.tool, ["serve", "--list-faults"], environment: environment)
        #expect(text.exit == .exited(0) && text.output.count == Fault.allCases.count + 1)
        #expect(text.output.contains { $0.hasPrefix("close@BYTES ") && $0.hasSuffix(Fault.close.summary) })
        let nothing = try await Program.run(Products.tool, ["serve"], environment: environment)
        #expect(nothing.exit == .exited(64) && nothing.errors.count == 1, "\(nothing.errors)")
    }

    @Test("The document has the table as it is tested")
    func document() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("docs/faults.md"), encoding: .utf8)
        let table = try FaultRow.document()
        #expect(text.contains(table), "docs/faults.md should hold:\n\(table)")
    }

    /// Faults that end by themselves, and after which it can be told what the file is.
    private static let passing = [
        "503", "429@1", "503@0", "retry-date@1", "garbage", "huge-head@200000", "drop", "drop-reused", "wait@1",
        "slow-head@1", "close@0", "close@1", "close@70000", "close@399999", "reset@10000", "reset@399999", "noranges",
        "if-range-etag", "unsatisfiable", "range-shift@5", "no-content-range", "wrong-total", "other-etag", "multipart",
        "weak-etag", "date-only", "no-validator", "changing", "short@1", "short@100000", "long@9", "digest", "chunked",
        "bad-chunk@5000", "informational@50", "rate@1MB",
    ]

    @Test("Faults by chance, several for each download, leave whole files or failures with a reason, and nothing else")
    func byChance() async throws {
        let given = ProcessEnvironment.value("BACKGROUNDASSETS_SEED", in: ProcessEnvironment.current).flatMap(
            UInt64.init)
        let seed = given ?? UInt64.random(in: .min ... .max)
        print("faults by chance: BACKGROUNDASSETS_SEED=\(seed) repeats them")
        var chance = Chance(state: seed)
        let files = (0..<40).map { number in
            var faults = (0..<chance.next(4)).map { _ in
                "\(Self.passing[chance.next(Self.passing.count)])x\(1 + chance.next(3))"
            }
            // Bytes too many that were also announced: nobody can tell such a file from the right one.
            if faults.contains(where: { $0.hasPrefix("short@") }) { faults.removeAll { $0.hasPrefix("long@") } }
            return FaultyFile(name: "chance-\(number).pack", faults: faults)
        }
        let results = try await FaultScene.run(files)
        for file in files {
            let result = try #require(results[file.name])
            let story: Comment = "seed \(seed), \(file.faults): \(result)"
            if result.failure == nil {
                #expect(result.isRight == true, story)
            } else {
                #expect(result.isRight == nil && !result.rows.isEmpty, story)
            }
            // Each fault applies to three answers at most, and an attempt asks twice at most.
            #expect(result.requests <= 2 * (3 * file.faults.count + 1), story)
            #expect(result.sent <= Int64(FaultScene.size) * Int64(result.requests), story)
        }
    }
}

extension FaultRow.Diagnosis {
    fileprivate func fits(_ row: FaultResult.Row) -> Bool { row.reason == reason && row.sentence.contains(words) }
}

/// Numbers out of a seed.
private struct Chance {
    var state: UInt64

    mutating func next(_ count: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(count))
    }
}
