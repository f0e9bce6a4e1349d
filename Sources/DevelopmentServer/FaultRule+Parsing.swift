// The text form of fault rules: GLOB:ACTION or GLOB:ACTIONxN.

extension FaultRule {
    /// Parses `GLOB:ACTION` with an optional `xN` for the first N requests.
    ///
    /// ACTION is a status from 400 to 599 (`503`, `503@5` with Retry-After), `close@BYTES`, `stall@BYTES`,
    /// `rate=BYTES` or `noranges`; BYTES takes KiB, MiB, GiB, kB, MB, GB.
    package init(parsing text: String) throws(DevelopmentServerError) {
        guard let colon = text.lastIndex(of: ":"), colon != text.startIndex else {
            throw Self.error(text, "it needs a path pattern, a colon and an action, like \"*.mp4:503x2\"")
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
        if action == "noranges" { return .dropRanges }
        if let bytes = try bytes(action, after: "close@", in: text) { return .closeAfter(bytes) }
        if let bytes = try bytes(action, after: "stall@", in: text) { return .stallAfter(bytes) }
        if let bytes = try bytes(action, after: "rate=", in: text) {
            guard bytes > 0 else { throw error(text, "the rate must be 1 or more") }
            return .throttle(bytesPerSecond: bytes)
        }
        let parts = action.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        guard let code = Int(parts[0]) else {
            throw error(
                text,
                "\"\(action)\" is no action; use a status like 503, close@BYTES, stall@BYTES, rate=BYTES or noranges")
        }
        guard (400...599).contains(code) else { throw error(text, "the status must be from 400 to 599") }
        guard parts.count == 2 else { return .status(code, retryAfter: nil) }
        guard let seconds = Int(parts[1]), seconds >= 0, seconds <= Int(Int32.max) else {
            throw error(text, "\"\(parts[1])\" is no number of seconds")
        }
        return .status(code, retryAfter: seconds)
    }

    private static func bytes(
        _ action: Substring, after prefix: String, in text: String
    ) throws(DevelopmentServerError) -> Int64? {
        guard action.hasPrefix(prefix) else { return nil }
        let amount = action.dropFirst(prefix.count)
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
