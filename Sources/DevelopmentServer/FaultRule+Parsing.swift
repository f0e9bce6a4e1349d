// The text form of fault rules: PATTERN:FAULT, PATTERN:FAULT@VALUE, and xN behind either.

extension FaultRule {
    /// Parses a pattern, a colon and a fault of the catalogue, with an optional `xN` for the first N requests.
    ///
    /// A status from 400 to 599 stands for itself. `=` may stand in place of `@`, and bytes take KiB, MiB, GiB, kB, MB
    /// and GB.
    package init(parsing text: String) throws(DevelopmentServerError) {
        guard let colon = text.lastIndex(of: ":"), colon != text.startIndex else {
            throw Self.error(text, "it needs a path pattern, a colon and a fault, like \"*.mp4:503x2\"")
        }
        var action = text[text.index(after: colon)...]
        var requestsMax: Int?
        if let cross = action.lastIndex(of: "x"), let count = Int(action[action.index(after: cross)...]) {
            guard count > 0, count <= Int(Int32.max) else { throw Self.error(text, "the count must be 1 or more") }
            requestsMax = count
            action = action[..<cross]
        }
        let glob = text[..<colon].drop { $0 == "/" }
        self.init(glob: String(glob), action: try Self.action(action, in: text), requestsMax: requestsMax)
    }

    private static func action(_ action: Substring, in text: String) throws(DevelopmentServerError) -> FaultAction {
        let separator = action.firstIndex { $0 == "@" || $0 == "=" }
        let name = action[..<(separator ?? action.endIndex)]
        let value = separator.map { action[action.index(after: $0)...] }
        if let code = Int64(name) { return try status(code, value, in: text) }
        guard let fault = Fault(rawValue: String(name)), fault != .status else {
            throw error(
                text,
                "there is no fault \"\(name)\"; use a status like 503, or one of 'backgroundassets serve --list-faults'"
            )
        }
        switch fault.parameter {
        case .none:
            guard value == nil else { throw error(text, "\(name) takes no value") }
            return FaultAction(fault)
        case .bytes(let usual):
            guard let value else {
                guard let usual else { throw error(text, "\(name) needs a number of bytes, like \(name)@64KiB") }
                return FaultAction(fault, usual)
            }
            return FaultAction(fault, try bytes(value, in: text))
        case .rate:
            let rate = try value.map { (value) throws(DevelopmentServerError) in try bytes(value, in: text) } ?? 0
            guard rate > 0 else { throw error(text, "the rate must be 1 byte a second or more, like \(name)@5MiB") }
            return FaultAction(fault, rate)
        case .seconds, .count:
            guard let value else { return FaultAction(fault) }
            return FaultAction(fault, try number(value, in: text))
        case .status:
            preconditionFailure("a status has no name")
        }
    }

    private static func status(
        _ code: Int64, _ value: Substring?, in text: String
    ) throws(DevelopmentServerError) -> FaultAction {
        guard (400...599).contains(code) else { throw error(text, "the status must be from 400 to 599") }
        guard let value else { return FaultAction(.status, code) }
        return FaultAction(.status, code, retryAfter: try number(value, in: text))
    }

    private static func number(_ text: Substring, in rule: String) throws(DevelopmentServerError) -> Int64 {
        guard let number = Int64(text), number >= 0, number <= Int64(Int32.max) else {
            throw error(rule, "\"\(text)\" is no number of seconds, or of anything")
        }
        return number
    }

    private static func bytes(_ amount: Substring, in text: String) throws(DevelopmentServerError) -> Int64 {
        let units: [(String, Int64)] = [
            ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("kB", 1000), ("MB", 1_000_000),
            ("GB", 1_000_000_000), ("", 1),
        ]
        for (unit, factor) in units where amount.hasSuffix(unit) {
            guard let number = Int64(amount.dropLast(unit.count)), number >= 0 else { break }
            let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
            guard !overflow else { break }
            return bytes
        }
        throw error(text, "\"\(amount)\" is no number of bytes, like 65536, 64KiB or 5MiB")
    }

    private static func error(_ text: String, _ why: String) -> DevelopmentServerError {
        DevelopmentServerError(.fault, "The fault \"\(text)\" cannot be understood: \(why)")
    }
}
