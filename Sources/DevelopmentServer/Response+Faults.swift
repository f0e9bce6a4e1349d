// Answers that take the place of the file, and what servers do wrong about heads and bodies of any answer.

extension Response {
    /// SHA-256 of nothing, in Base64.
    private static let digestOfNothing = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    /// A mail server's greeting: what comes from a port that is not http's.
    private static let greeting = "220 elsewhere.test ESMTP ready\r\n"
    /// Filler behind the end of a body, and in fields.
    private static let filler = UInt8(ascii: "#")
    private static let paddingMax = 1 << 10

    /// What is answered whether or not there is a file; nil where no fault asks for it.
    static func instead(of faults: AppliedFaults, to head: RequestHead, now: Duration) -> Response? {
        if let status = faults.status {
            let fields = status.retryAfter.map { [Field("Retry-After", "\($0)")] } ?? []
            return plain(Int(status.value), to: head, fields: fields)
        }
        if let seconds = faults[.retryDate] {
            let date = HTTPDate.format(now.components.seconds + seconds)
            return plain(503, to: head, fields: [Field("Retry-After", date)])
        }
        if faults.has(.captivePortal) {
            let page =
                "<!DOCTYPE html><html><title>Wi-Fi</title><body>Please log in to use this network.</body></html>\n"
            return text(page, type: "text/html; charset=utf-8", status: 200, to: head)
        }
        let targets: [(Fault, String)] = [
            (.redirectLoop, head.target), (.redirectPlain, "http://elsewhere.test\(head.target)"),
            (.redirectAway, "https://elsewhere.test\(head.target)"),
        ]
        return targets.first { faults.has($0.0) }.map { plain(302, to: head, fields: [Field("Location", $0.1)]) }
    }

    /// Makes a right answer wrong.
    mutating func bend(by faults: AppliedFaults) {
        if faults.has(.gzip) { fields.append(Field("Content-Encoding", "gzip")) }
        if faults.has(.wrongDigest) {
            fields.removeAll { $0.name == "Repr-Digest" }
            fields.append(Field("Repr-Digest", "sha-256=:\(Self.digestOfNothing):"))
        }
        if faults.has(.wrongChecksum) { fields.append(Field("x-amz-checksum-sha256", Self.digestOfNothing)) }
        if faults.has(.chunked) || faults.has(.badChunk) { chunk(badAfter: faults[.badChunk]) }
        if let extra = faults[.long] {
            body.append(.bytes(Array(repeating: Self.filler, count: Int(clamping: extra))))
        }
        if faults.has(.http10) {
            (minorVersion, length, closes, saysKeepAlive) = (0, nil, true, false)
        }
        if let bytes = faults[.hugeHead] { pad(Int(clamping: bytes)) }
        informational = faults[.informational].map { Int(clamping: $0) } ?? 0
        if faults.has(.garbage) {
            noise = Array(Self.greeting.utf8)
            (body, closes) = ([], true)
        }
    }

    /// One chunk holds all, or the first so many bytes of the file, and nonsense follows it.
    private mutating func chunk(badAfter: Int64?) {
        let whole = body
        length = nil
        fields.append(Field("Transfer-Encoding", "chunked"))
        guard !whole.isEmpty else { return body = [.bytes(Array("0\r\n\r\n".utf8))] }
        let kept = badAfter.map { Self.prefix(of: whole, $0) } ?? whole
        let size = kept.reduce(Int64(0)) { $0 + Self.count($1) }
        let before = size > 0 ? String(size, radix: 16) + "\r\n" : ""
        let after = (size > 0 ? "\r\n" : "") + (badAfter == nil ? "0\r\n\r\n" : "no chunk\r\n")
        body = [.bytes(Array(before.utf8))] + kept + [.bytes(Array(after.utf8))]
        if badAfter != nil { closes = true }
    }

    private static func count(_ part: BodyPart) -> Int64 {
        switch part {
        case .bytes(let bytes): Int64(bytes.count)
        case .file(_, let count): count
        }
    }

    private static func prefix(of parts: [BodyPart], _ bytes: Int64) -> [BodyPart] {
        var left = bytes
        return parts.compactMap { part in
            let count = min(count(part), left)
            left -= count
            guard count > 0 else { return nil }
            switch part {
            case .bytes(let bytes): return .bytes(Array(bytes.prefix(Int(count))))
            case .file(let offset, _): return .file(offset: offset, count: count)
            }
        }
    }

    private mutating func pad(_ bytes: Int) {
        var left = bytes
        while left > 0 {
            let count = min(left, Self.paddingMax)
            fields.append(Field("X-Padding", String(repeating: "#", count: count)))
            left -= count
        }
    }
}
