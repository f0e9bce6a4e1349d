// A fault for some requests.

/// A fault with its value.
package struct FaultAction: Hashable, Sendable, CustomStringConvertible {
    package var fault: Fault
    /// Bytes, seconds, a count or a status; 0 where the fault takes none.
    package var value: Int64
    /// Retry-After of a status.
    package var retryAfter: Int64?

    /// Without a value the fault's own default, which it must have.
    package init(_ fault: Fault, _ value: Int64? = nil, retryAfter: Int64? = nil) {
        self.fault = fault
        self.retryAfter = retryAfter
        switch fault.parameter {
        case .none: self.value = 0
        case .bytes(let usual?), .seconds(let usual), .count(let usual): self.value = value ?? usual
        case .bytes(nil), .rate, .status:
            guard let value else { preconditionFailure("\(fault.rawValue) needs a value") }
            self.value = value
        }
    }

    /// As on the command line.
    package var description: String {
        switch fault.parameter {
        case .none: fault.rawValue
        case .bytes, .rate, .seconds, .count: "\(fault.rawValue)@\(value)"
        case .status: "\(value)" + (retryAfter.map { "@\($0)" } ?? "")
        }
    }
}

/// A fault for the requests whose path, or whose host where the handshake is meant, matches a pattern.
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
    package var description: String { "\(glob):\(action)" + (requestsMax.map { "x\($0)" } ?? "") }

    func matches(_ path: String) -> Bool { globMatches(Array(glob.utf8), Array(path.utf8.drop { $0 == 0x2F })) }
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
