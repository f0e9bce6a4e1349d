internal import AssetsModel
// Faults of the real server's catalogue, as far as a scripted one can have them.
package import DevelopmentServer

extension ScriptedResource {
    /// Takes on a fault under the name that `backgroundassets serve --fault` has for it; false where it lies below what
    /// is simulated: framing of HTTP, TLS, ports.
    package mutating func takeOn(_ action: FaultAction) -> Bool {
        switch action.fault {
        case .status:
            let fields = action.retryAfter.map { [HeaderField(name: "Retry-After", value: "\($0)")] } ?? []
            answers.append(.status(Int(action.value), fields))
        case .captivePortal: answers.append(.signIn)
        case .close, .reset: answers.append(.cut(after: Int(clamping: action.value)))
        case .drop: answers.append(.failure(ScriptedServer.broken))
        case .refuse: answers.append(.failure(Self.refused))
        case .hang: bytesPerSecond = 0
        case .rate: bytesPerSecond = Int(clamping: action.value)
        case .wait, .slowHead: latency = .seconds(action.value)
        case .noRanges: parts = .none
        case .ifRangeTag: parts = .bareOnly
        case .rangeShift: parts = .elsewhere
        case .weakTag: (etag, lastModified) = (etag.map { "W/" + $0 }, nil)
        case .dateOnly: (etag, lastModified) = (nil, Self.dayBefore)
        case .noValidator: (etag, lastModified) = (nil, nil)
        case .digest: digest = .ofWhole
        case .wrongDigest, .wrongChecksum: digest = .wrong
        case .retryDate, .redirectLoop, .redirectPlain, .redirectAway, .unsatisfiable, .noContentRange, .wrongTotal,
            .otherTag, .multipart, .sameTag, .changing, .stall, .wrongSize, .short, .long, .corrupt, .gzip, .chunked,
            .badChunk, .http10, .garbage,
            .hugeHead, .informational, .dropReused, .tlsRefused, .tlsExpired, .tlsUntrusted:
            return false
        }
        return true
    }

    private static let refused = TransportFailure(
        kind: .connect, code: URLErrorCode.cannotConnectToHost, text: "the server refuses connections")
    /// The day before `ScriptedServer.date`.
    private static let dayBefore = "Mon, 13 Nov 2023 22:13:20 GMT"
}
