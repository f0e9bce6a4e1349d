// Failures on demand, so that an app's downloads can be tried against a bad network and a bad server.

/// What goes wrong with a request.
package enum FaultAction: Hashable, Sendable {
    /// Answers with this status and no file; `retryAfter` in seconds becomes the header.
    case status(Int, retryAfter: Int?)
    /// Closes the connection after so many bytes of the body.
    case closeAfter(Int64)
    /// Sends so many bytes of the body, then nothing, and keeps the connection.
    case stallAfter(Int64)
    /// Sends no more than so many bytes a second.
    case throttle(bytesPerSecond: Int64)
    /// Answers as a server that knows no ranges.
    case dropRanges
}

/// A fault for some paths.
package struct FaultRule: Hashable, Sendable, CustomStringConvertible {
    /// Path without its first slash; `*` stands for any characters, also slashes, `?` for one.
    package var glob: String
    package var action: FaultAction
    /// Only the first so many matching requests; nil: all.
    package var requestsMax: Int?

    package init(glob: String, action: FaultAction, requestsMax: Int? = nil) {
        self.glob = glob
        self.action = action
        self.requestsMax = requestsMax
    }

    /// As on the command line; parsing it gives the same rule.
    package var description: String {
        let action =
            switch action {
            case .status(let code, let retryAfter): "\(code)" + (retryAfter.map { "@\($0)" } ?? "")
            case .closeAfter(let bytes): "close@\(bytes)"
            case .stallAfter(let bytes): "stall@\(bytes)"
            case .throttle(let rate): "rate=\(rate)"
            case .dropRanges: "noranges"
            }
        return "\(glob):\(action)" + (requestsMax.map { "x\($0)" } ?? "")
    }

    func matches(_ path: String) -> Bool { globMatches(Array(glob.utf8), Array(path.utf8.drop { $0 == 0x2F })) }
}

/// Fault rules, in order: of each kind of action the first rule that matches a request and is not used up applies.
package struct FaultPlan: Hashable, Sendable {
    package var rules: [FaultRule]

    package init(_ rules: [FaultRule] = []) { self.rules = rules }

    /// Parses rules as on the command line, such as `video.mp4:503x2`, `*.mp4:close@1MiBx1`, `*:rate=5MiB`.
    package init(parsing texts: [String]) throws(DevelopmentServerError) {
        rules = []
        for text in texts { rules.append(try FaultRule(parsing: text)) }
    }
}

/// What of a plan applies to one request.
struct AppliedFaults: Equatable {
    var status: (code: Int, retryAfter: Int?)?
    var closeAfter: Int64?
    var stallAfter: Int64?
    var bytesPerSecond: Int64?
    var dropsRanges = false
    /// The rules, for the log.
    var description = ""

    static func == (left: AppliedFaults, right: AppliedFaults) -> Bool {
        left.status?.code == right.status?.code && left.status?.retryAfter == right.status?.retryAfter
            && left.closeAfter == right.closeAfter && left.stallAfter == right.stallAfter
            && left.bytesPerSecond == right.bytesPerSecond && left.dropsRanges == right.dropsRanges
    }

    /// Returns false when an action of that kind is there already.
    fileprivate mutating func add(_ rule: FaultRule) -> Bool {
        switch rule.action {
        case .status(let code, let retryAfter):
            guard status == nil else { return false }
            status = (code, retryAfter)
        case .closeAfter(let bytes):
            guard closeAfter == nil else { return false }
            closeAfter = bytes
        case .stallAfter(let bytes):
            guard stallAfter == nil else { return false }
            stallAfter = bytes
        case .throttle(let rate):
            guard bytesPerSecond == nil else { return false }
            bytesPerSecond = rate
        case .dropRanges:
            guard !dropsRanges else { return false }
            dropsRanges = true
        }
        description += (description.isEmpty ? "" : " ") + rule.description
        return true
    }
}

/// A plan at work: counts how often each rule was used.
struct FaultLedger {
    private let plan: FaultPlan
    private var used: [Int]

    init(_ plan: FaultPlan) {
        self.plan = plan
        used = Array(repeating: 0, count: plan.rules.count)
    }

    mutating func take(for path: String) -> AppliedFaults {
        var faults = AppliedFaults()
        for (index, rule) in plan.rules.enumerated() where rule.matches(path) {
            if let max = rule.requestsMax, used[index] >= max { continue }
            if faults.add(rule) { used[index] += 1 }
        }
        return faults
    }
}

/// Matches bytes against `*` and `?`; steps back to the last star only, so the time is bounded by the product of both.
private func globMatches(_ glob: [UInt8], _ text: [UInt8]) -> Bool {
    let star = UInt8(ascii: "*")
    var (atGlob, atText) = (0, 0)
    var (lastStar, starText) = (-1, 0)
    while atText < text.count {
        if atGlob < glob.count, glob[atGlob] == star {
            (lastStar, starText) = (atGlob, atText)
            atGlob += 1
        } else if atGlob < glob.count, glob[atGlob] == text[atText] || glob[atGlob] == UInt8(ascii: "?") {
            atGlob += 1
            atText += 1
        } else if lastStar >= 0 {
            starText += 1
            (atGlob, atText) = (lastStar + 1, starText)
        } else {
            return false
        }
    }
    return glob[atGlob...].allSatisfy { $0 == star }
}
