import Testing

@testable import DevelopmentServer

@Suite("Fault rules")
struct FaultPlanTests {
    @Test(
        "Every action can be written",
        arguments: [
            ("a.mp4:503", FaultRule(glob: "a.mp4", action: FaultAction(.status, 503))),
            ("a.mp4:503x2", FaultRule(glob: "a.mp4", action: FaultAction(.status, 503), requestsMax: 2)),
            (
                "/a.mp4:429@7x1",
                FaultRule(glob: "a.mp4", action: FaultAction(.status, 429, retryAfter: 7), requestsMax: 1)
            ),
            ("*.mp4:close@1048576x1", FaultRule(glob: "*.mp4", action: FaultAction(.close, 1_048_576), requestsMax: 1)),
            ("*:close@0", FaultRule(glob: "*", action: FaultAction(.close, 0))),
            ("*:stall@64KiB", FaultRule(glob: "*", action: FaultAction(.stall, 65_536))),
            ("*:rate@5MiB", FaultRule(glob: "*", action: FaultAction(.rate, 5 << 20))),
            ("*:rate=2GB", FaultRule(glob: "*", action: FaultAction(.rate, 2_000_000_000))),
            ("a:b:noranges", FaultRule(glob: "a:b", action: FaultAction(.noRanges))),
            ("box:503", FaultRule(glob: "box", action: FaultAction(.status, 503))),
            ("a:http10x3", FaultRule(glob: "a", action: FaultAction(.http10), requestsMax: 3)),
            ("a:informational@7x3", FaultRule(glob: "a", action: FaultAction(.informational, 7), requestsMax: 3)),
            ("a:wait", FaultRule(glob: "a", action: FaultAction(.wait, 2))),
        ])
    func parse(text: String, rule: FaultRule) throws {
        #expect(try FaultRule(parsing: text) == rule)
        #expect(try FaultRule(parsing: rule.description) == rule)
    }

    @Test(
        "What cannot be understood is named",
        arguments: [
            "", "a.mp4", ":503", "a:", "a:200", "a:600", "a:503x0", "a:503x-1", "a:503x", "a:503@", "a:503@-1",
            "a:503@x", "a:close", "a:close@", "a:close@-1", "a:close@1TiB", "a:close@9999999999GiB", "a:rate=0",
            "a:rate=", "a:rate", "a:stall", "a:noranges@1", "a:dropped", "a:status", "a:status@503", "a:wait@x",
            "a:garbage@", "a:informational@-1",
        ])
    func malformed(text: String) throws {
        let error = try #require(throws: DevelopmentServerError.self) { try FaultPlan(parsing: ["*:503", text]) }
        #expect(error.code == .fault)
        #expect(error.reason.contains("\"\(text)\""))
    }

    @Test(
        "Patterns match whole paths",
        arguments: [
            ("*", "a/b.mp4", true), ("*", "", true), ("*.mp4", "a/b.mp4", true), ("*.mp4", "a.mp4x", false),
            ("a.mp4", "a.mp4", true), ("a.mp4", "b/a.mp4", false), ("a?c", "abc", true), ("a?c", "ac", false),
            ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXc", false), ("**", "x", true), ("", "x", false),
            ("session-*.mp4", "session-1.mp4", true), ("*a*a*a*b", String(repeating: "a", count: 2000), false),
        ])
    func glob(glob: String, path: String, isMatch: Bool) {
        #expect(FaultRule(glob: glob, action: FaultAction(.noRanges)).matches(path) == isMatch)
    }

    @Test("A rule is used up after its count, and only matching requests count")
    func count() throws {
        var ledger = FaultLedger(try FaultPlan(parsing: ["a*:503x2", "a:404"]))
        #expect(ledger.take(for: "b")[.status] == nil)
        #expect(ledger.take(for: "a")[.status] == 503)
        #expect(ledger.take(for: "ab")[.status] == 503)
        #expect(ledger.take(for: "ab")[.status] == nil)
        #expect(ledger.take(for: "a")[.status] == 404)
    }

    @Test("Different actions apply together; of one kind the first")
    func together() throws {
        var ledger = FaultLedger(
            try FaultPlan(parsing: ["*:rate=10", "*:close@5", "*:rate@20", "*:noranges", "*:stall@9"]))
        let faults = ledger.take(for: "x")
        #expect(faults[.rate] == 10 && faults[.close] == 5 && faults[.stall] == 9 && faults.has(.noRanges))
        #expect(faults.description == "*:rate@10 *:close@5 *:noranges *:stall@9")
    }

    @Test("Faults of TLS are for hosts and not for paths, and a reused connection is one that was used")
    func scopes() throws {
        var ledger = FaultLedger(try FaultPlan(parsing: ["*:tls-expiredx1", "*:drop-reusedx1", "*:hang"]))
        #expect(!ledger.take(for: "a").has(.dropReused))
        #expect(ledger.take(for: "a", isReused: true).description == "*:drop-reusedx1 *:hang")
        #expect(!ledger.take(for: "a", isReused: true).has(.dropReused))
        #expect(ledger.take(forHost: "localhost").description == "*:tls-expiredx1")
        #expect(ledger.take(forHost: "localhost").description.isEmpty)
    }

    @Test(
        "The catalogue has a name, a form and a line for every fault, and each can be parsed", arguments: Fault.allCases
    )
    func catalogue(fault: Fault) throws {
        #expect(!fault.summary.isEmpty && !fault.summary.hasSuffix(".") && fault.summary.count < 100)
        let value =
            switch fault.parameter {
            case .none: ""
            case .bytes, .rate, .seconds, .count: "@7"
            case .status: "503@7"
            }
        let text = fault == .status ? value : fault.rawValue + value
        let rule = try FaultRule(parsing: "*:\(text)x3")
        #expect(rule.action.fault == fault && rule.requestsMax == 3 && rule.description == "*:\(text)x3")
        #expect(fault.form == fault.rawValue || fault.form.contains("@"))
    }
}
