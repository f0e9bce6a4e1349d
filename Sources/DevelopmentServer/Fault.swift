// The catalogue of what servers and networks do wrong, each under one name.

/// A misbehaviour that can be asked for by name. Several apply together; each says what it leaves as it is.
package enum Fault: String, CaseIterable, Sendable {
    // What is answered in place of the file.
    case status
    case retryDate = "retry-date"
    case captivePortal = "captive-portal"
    case redirectLoop = "redirect-loop"
    case redirectPlain = "redirect-http"
    case redirectAway = "redirect-away"
    // Parts of files.
    case noRanges = "noranges"
    case ifRangeTag = "if-range-etag"
    case unsatisfiable
    case rangeShift = "range-shift"
    case noContentRange = "no-content-range"
    case wrongTotal = "wrong-total"
    case otherTag = "other-etag"
    case multipart
    // Versions and their names.
    case weakTag = "weak-etag"
    case dateOnly = "date-only"
    case noValidator = "no-validator"
    case sameTag = "same-etag"
    case changing
    // Bodies.
    case wrongSize = "wrong-size"
    case short
    case long
    case corrupt
    case digest
    case wrongDigest = "wrong-digest"
    case wrongChecksum = "wrong-checksum"
    case gzip
    case chunked
    case badChunk = "bad-chunk"
    case http10
    // Heads.
    case garbage
    case hugeHead = "huge-head"
    case informational
    // Time, and ends of connections.
    case wait
    case slowHead = "slow-head"
    case hang
    case drop
    case dropReused = "drop-reused"
    case close
    case reset
    case stall
    case rate
    case refuse
    // TLS.
    case tlsRefused = "tls-refused"
    case tlsExpired = "tls-expired"
    case tlsUntrusted = "tls-untrusted"

    /// What stands behind the name.
    package enum Parameter: Hashable, Sendable {
        case none
        /// A number with a unit; without a default it must be given.
        case bytes(default: Int64?)
        case rate
        case seconds(default: Int64)
        case count(default: Int64)
        /// The fault's name is not written: the status is, with the seconds of Retry-After behind it or not.
        case status
    }

    package var parameter: Parameter {
        switch self {
        case .status: .status
        case .retryDate: .seconds(default: 2)
        case .close, .reset, .stall, .badChunk, .wrongSize: .bytes(default: nil)
        case .rangeShift, .wrongTotal, .short, .long: .bytes(default: 1)
        case .corrupt: .bytes(default: 0)
        case .hugeHead: .bytes(default: 1 << 20)
        case .rate: .rate
        case .informational: .count(default: 1000)
        case .wait, .slowHead, .refuse: .seconds(default: 2)
        case .captivePortal, .redirectLoop, .redirectPlain, .redirectAway, .noRanges, .ifRangeTag, .unsatisfiable,
            .noContentRange, .otherTag, .multipart, .weakTag, .dateOnly, .noValidator, .sameTag, .changing, .digest,
            .wrongDigest, .wrongChecksum, .gzip, .chunked, .http10, .garbage, .hang, .drop, .dropReused, .tlsRefused,
            .tlsExpired, .tlsUntrusted:
            .none
        }
    }

    /// What is matched against a rule's pattern.
    package enum Scope: Sendable {
        case path
        /// The host that a client names in its handshake, before anything is asked for; empty without one.
        case host
    }

    package var scope: Scope {
        switch self {
        case .tlsRefused, .tlsExpired, .tlsUntrusted: .host
        case .status, .retryDate, .captivePortal, .redirectLoop, .redirectPlain, .redirectAway, .noRanges, .ifRangeTag,
            .unsatisfiable, .rangeShift, .noContentRange, .wrongTotal, .otherTag, .multipart, .weakTag, .dateOnly,
            .noValidator, .sameTag, .changing, .wrongSize, .short, .long, .corrupt, .digest, .wrongDigest,
            .wrongChecksum, .gzip, .chunked, .badChunk, .http10, .garbage, .hugeHead, .informational, .wait, .slowHead,
            .hang, .drop, .dropReused, .close, .reset, .stall, .rate, .refuse:
            .path
        }
    }

    /// As it is written in a rule: `close@BYTES`, `wait[@SECONDS]`.
    package var form: String {
        switch parameter {
        case .none: rawValue
        case .bytes(nil), .rate: "\(rawValue)@BYTES"
        case .bytes: "\(rawValue)[@BYTES]"
        case .seconds: "\(rawValue)[@SECONDS]"
        case .count: "\(rawValue)[@COUNT]"
        case .status: "STATUS[@SECONDS]"
        }
    }
}
