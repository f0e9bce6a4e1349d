// What becomes of a download that meets each fault: the expectation of the tests and the table of docs/faults.md.
import DevelopmentServer
import Testing

/// A file with a fault, the journal's diagnosis and the outcome.
struct FaultRow: Sendable, Hashable, CustomTestStringConvertible {
    enum Place: Sendable, Hashable {
        /// One server for all of them; the app asks for the file in the foreground.
        case shared
        /// A server of its own, since the fault is one of connections. The app schedules it: in the foreground a server
        /// that cannot be reached is soon given up.
        case alone
        /// An essential asset, whose size is announced, before the app is first launched.
        case essential
    }

    enum Outcome: Sendable, Hashable {
        /// One version of the file, byte for byte, after so many requests; of its bytes at most so many came twice.
        case whole(requests: Int, twice: Int64 = 0)
        /// A file that is not the server's; what would have told.
        case wrong(String)
        /// The app is told of this number of NSURLErrorDomain, or of BAErrorDomain where it is positive.
        case failed(Int)
    }

    /// A row of the journal: its reason, or its event where that says all, and words of its sentence.
    struct Diagnosis: Sendable, Hashable {
        var reason: String
        var words: String
        init(_ reason: String, _ words: String) {
            self.reason = reason
            self.words = words
        }
    }

    /// As on the command line; the first is the one that is meant, the others bring it about.
    var faults: [String]
    var place: Place
    /// In this order; each may come more than once.
    var diagnosis: [Diagnosis]
    var outcome: Outcome

    init(_ faults: [String], in place: Place = .shared, says diagnosis: [Diagnosis] = [], ends outcome: Outcome) {
        self.faults = faults
        self.place = place
        self.diagnosis = diagnosis
        self.outcome = outcome
    }

    var testDescription: String { faults.joined(separator: " ") + (place == .essential ? " (essential)" : "") }

    /// The fault that is meant.
    var fault: Fault {
        get throws { try FaultRule(parsing: "*:" + faults[0]).action.fault }
    }
}

// MARK: The table

extension FaultRow {
    /// Where answers are cut, so that the download has to be gone on with.
    private static let cut = "close@150000x1"
    private static let wasCut = Diagnosis("network", "closed with 250000 bytes remaining")
    private static func startedOver(_ words: String) -> Diagnosis { Diagnosis("download-started-over", words) }
    private static let otherPart = startedOver("sent another part than it was asked for")
    private static let otherVersion = startedOver("has another version")
    private static let unnamed = startedOver("nothing names the version")
    private static let tooSlow = Diagnosis("stall", "Less than 1024 bytes/sec")
    private static let once: Int64 = 150_000

    static let all: [FaultRow] = inPlaceOfTheFile + parts + versions + bodies + heads + connections + handshakes

    private static let inPlaceOfTheFile = [
        FaultRow(["503x1"], says: [.init("http", "the server answered 503")], ends: .whole(requests: 2)),
        FaultRow(["429@1x1"], says: [.init("http", "the server answered 429")], ends: .whole(requests: 2)),
        FaultRow(["404"], says: [.init("http", "the server answered 404")], ends: .failed(-1100)),
        FaultRow(["retry-date@1x1"], says: [.init("http", "the server answered 503")], ends: .whole(requests: 2)),
        FaultRow(["captive-portalx1"], says: [.init("portal", "a web page came")], ends: .whole(requests: 2)),
        FaultRow(["redirect-loop"], says: [.init("http", "more than 10 redirects")], ends: .failed(-1007)),
        FaultRow(["redirect-http"], says: [.init("http", "elsewhere.test without https")], ends: .failed(-1022)),
        FaultRow(
            ["redirect-away"], in: .essential, says: [.init("domain", "elsewhere.test, which is not allowed")],
            ends: .failed(202)),
    ]

    private static let parts = [
        FaultRow(
            ["noranges", cut], says: [wasCut, startedOver("sends no parts")], ends: .whole(requests: 2, twice: once)),
        FaultRow(["if-range-etag", cut], says: [wasCut], ends: .whole(requests: 3, twice: 400_000)),
        FaultRow(
            ["unsatisfiable", cut], says: [wasCut, startedOver("has nothing from the byte on")],
            ends: .whole(requests: 3, twice: once)),
        FaultRow(["range-shift", cut], says: [wasCut, otherPart], ends: .whole(requests: 3, twice: 400_000)),
        FaultRow(["no-content-range", cut], says: [wasCut, otherPart], ends: .whole(requests: 3, twice: 400_000)),
        FaultRow(["wrong-total", cut], says: [wasCut, otherPart], ends: .whole(requests: 3, twice: 400_000)),
        FaultRow(["other-etag", cut], says: [wasCut, otherVersion], ends: .whole(requests: 3, twice: 400_000)),
        FaultRow(["multipart", cut], says: [wasCut, otherPart], ends: .whole(requests: 3, twice: 400_000)),
    ]

    private static let versions = [
        FaultRow(["weak-etag", cut], says: [wasCut, unnamed], ends: .whole(requests: 2, twice: once)),
        FaultRow(["date-only", cut], says: [wasCut], ends: .whole(requests: 2)),
        FaultRow(["no-validator", cut], says: [wasCut, unnamed], ends: .whole(requests: 2, twice: once)),
        FaultRow(["same-etag", cut], says: [wasCut], ends: .whole(requests: 2)),
        FaultRow(["changing", cut], says: [wasCut, otherVersion], ends: .whole(requests: 2, twice: once)),
        FaultRow(["changing", "weak-etag", cut], says: [wasCut, unnamed], ends: .whole(requests: 2, twice: once)),
        FaultRow(
            ["changing", "date-only", cut], says: [wasCut, otherVersion], ends: .whole(requests: 2, twice: once)),
        FaultRow(["changing", "no-validator", cut], says: [wasCut, unnamed], ends: .whole(requests: 2, twice: once)),
        FaultRow(["changing", "same-etag", cut], says: [wasCut], ends: .wrong("a digest")),
        FaultRow(
            ["changing", "same-etag", "digest", cut], says: [wasCut, otherVersion],
            ends: .whole(requests: 3, twice: 400_000)),
    ]

    private static let bodies = [
        FaultRow(
            ["wrong-size@100000"], says: [.init("size", "100000 bytes instead of the 400000")],
            ends: .wrong("the size, which is binding for essential assets only")),
        FaultRow(
            ["wrong-size@100000"], in: .essential, says: [.init("size", "100000 bytes, 400000")], ends: .failed(-1011)),
        FaultRow(
            ["short@10x1"],
            says: [.init("network", "10 bytes remaining"), startedOver("has nothing from the byte on")],
            ends: .whole(requests: 3, twice: 400_000)),
        FaultRow(["long@10"], in: .alone, ends: .whole(requests: 1)),
        FaultRow(["corrupt@7"], ends: .wrong("a digest")),
        FaultRow(["corrupt@7", "digest"], says: [.init("digest", "SHA-256")], ends: .failed(-1011)),
        FaultRow(["digest"], ends: .whole(requests: 1)),
        FaultRow(["wrong-digest"], says: [.init("digest", "SHA-256")], ends: .failed(-1011)),
        FaultRow(["wrong-checksum"], says: [.init("digest", "SHA-256")], ends: .failed(-1011)),
        FaultRow(["gzip"], ends: .whole(requests: 1)),
        FaultRow(["chunked"], ends: .whole(requests: 1)),
        FaultRow(["chunked", cut], says: [.init("network", "outstanding read data")], ends: .whole(requests: 2)),
        FaultRow(
            ["bad-chunk@150000x1"], says: [.init("network", "missing hexadecimal sequence in chunked-encoding")],
            ends: .whole(requests: 2)),
        FaultRow(["http10"], ends: .whole(requests: 1)),
        FaultRow(
            ["http10", cut], says: [.init("size", "150000 bytes instead of the 400000")],
            ends: .wrong("the size, which is binding for essential assets only")),
        FaultRow(["http10", cut], in: .essential, says: [.init("size", "150000 bytes, 400000")], ends: .failed(-1011)),
    ]

    private static let heads = [
        FaultRow(["garbagex1"], says: [.init("http", "HTTP/0.9")], ends: .whole(requests: 2)),
        FaultRow(["huge-headx1"], says: [.init("http", "no proper head")], ends: .whole(requests: 2, twice: 400_000)),
        FaultRow(["informational"], ends: .whole(requests: 1)),
    ]

    private static let connections = [
        FaultRow(["wait@1"], ends: .whole(requests: 1)),
        FaultRow(["slow-head@1"], ends: .whole(requests: 1)),
        FaultRow(["hangx1"], says: [tooSlow], ends: .whole(requests: 2)),
        FaultRow(["dropx1"], in: .alone, says: [.init("network", "Empty reply")], ends: .whole(requests: 2)),
        FaultRow(["drop-reused", "redirect-loopx1"], in: .alone, ends: .whole(requests: 3)),
        FaultRow(["close@150000x1"], says: [wasCut], ends: .whole(requests: 2)),
        FaultRow(["reset@150000x1"], says: [.init("network", "reset by peer")], ends: .whole(requests: 2, twice: once)),
        FaultRow(["stall@150000x1"], says: [tooSlow], ends: .whole(requests: 2)),
        FaultRow(["rate@1x1"], says: [tooSlow], ends: .whole(requests: 2, twice: 100)),
        FaultRow(
            ["refuse@3x1"], in: .alone,
            says: [.init("network", "Empty reply"), .init("network", "Failed to connect")], ends: .whole(requests: 2)),
    ]

    private static let handshakes = [
        FaultRow(
            ["tls-refusedx1"], in: .alone, says: [.init("network", "handshake failure")], ends: .whole(requests: 1)),
        FaultRow(["tls-expiredx1"], in: .alone, says: [.init("certificate", "expired")], ends: .whole(requests: 1)),
        FaultRow(
            ["tls-untrustedx1"], in: .alone, says: [.init("certificate", "self-signed")], ends: .whole(requests: 1)),
    ]
}

// MARK: The document

extension FaultRow {
    /// The table of docs/faults.md.
    static func document() throws -> String {
        let head = "| fault | what the server does | the journal says | outcome |\n| --- | --- | --- | --- |\n"
        return head + (try all.map { try $0.line() }.joined())
    }

    private func line() throws -> String {
        let extras = faults.dropFirst().map { "`\($0)`" }.joined(separator: " and ")
        var name = "`\(faults[0])`" + (extras.isEmpty ? "" : " with \(extras)")
        if place == .essential { name += ", essential" }
        let says = diagnosis.map { $0.words.isEmpty ? "\($0.reason)" : "\($0.reason): ...\($0.words)..." }
        return "| \(name) | \(try fault.summary) | \(says.joined(separator: "; ")) | \(outcomeText) |\n"
    }

    private var outcomeText: String {
        switch outcome {
        case .whole(1, 0): "whole"
        case .whole(let requests, 0): "whole after \(requests) requests, no byte twice"
        case .whole(let requests, let twice): "whole after \(requests) requests, at most \(twice) bytes twice"
        case .wrong(let means): "a wrong file; what tells is \(means)"
        case .failed(let code): "fails with \(code)"
        }
    }
}
