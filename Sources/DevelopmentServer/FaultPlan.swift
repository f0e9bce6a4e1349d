// Failures on demand, so that an app's downloads can be tried against a bad network and a bad server.

/// Fault rules, in order: of each fault the first rule that matches a request and is not used up applies.
package struct FaultPlan: Hashable, Sendable {
    package var rules: [FaultRule]

    package init(_ rules: [FaultRule] = []) { self.rules = rules }

    /// Parses rules as on the command line, such as `video.mp4:503x2`, `*.mp4:close@1MiBx1`, `*:rate@5MiB`.
    package init(parsing texts: [String]) throws(DevelopmentServerError) {
        rules = []
        for text in texts { rules.append(try FaultRule(parsing: text)) }
    }
}

/// What of a plan applies to one request, or to one handshake.
struct AppliedFaults: Equatable {
    private var actions: [Fault: FaultAction] = [:]
    /// How many versions a file that changes has had before this one.
    private(set) var version = 0
    /// The rules, for the log.
    private(set) var description = ""

    init() {}

    init(_ actions: [FaultAction]) {
        for action in actions { self.actions[action.fault] = action }
    }

    /// The value of a fault that applies; nil where it does not.
    subscript(fault: Fault) -> Int64? { actions[fault]?.value }

    func has(_ fault: Fault) -> Bool { actions[fault] != nil }

    /// Status and Retry-After.
    var status: FaultAction? { actions[.status] }

    /// Returns false when the fault is there already. `used` says how often the rule was applied before.
    fileprivate mutating func add(_ rule: FaultRule, used: Int) -> Bool {
        guard actions[rule.action.fault] == nil else { return false }
        actions[rule.action.fault] = rule.action
        if rule.action.fault == .changing { version = used }
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

    /// For a request; `isReused` when its connection has brought one before.
    mutating func take(for path: String, isReused: Bool = false) -> AppliedFaults {
        take(.path, path) { $0 != .dropReused || isReused }
    }

    /// For a handshake.
    mutating func take(forHost host: String) -> AppliedFaults { take(.host, host) { _ in true } }

    private mutating func take(
        _ scope: Fault.Scope, _ subject: String, where applies: (Fault) -> Bool
    ) -> AppliedFaults {
        var faults = AppliedFaults()
        for (index, rule) in plan.rules.enumerated() {
            guard rule.action.fault.scope == scope, applies(rule.action.fault), rule.matches(subject) else { continue }
            if let max = rule.requestsMax, used[index] >= max { continue }
            if faults.add(rule, used: used[index]) { used[index] += 1 }
        }
        return faults
    }
}
