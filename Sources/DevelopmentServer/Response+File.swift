// A file, or a part of it, as the answer to a request; with what servers do wrong about parts.

extension Response {
    private static let boundary = "part-of-the-file"
    /// The tag that parts bear where theirs is another one.
    private static let otherTag = "\"other\""

    /// The file, a part of it, or why not.
    static func file(_ version: FileVersion, to head: RequestHead, faults: AppliedFaults) -> Response {
        var fields = version.tag.map { [Field("ETag", $0)] } ?? []
        if let modified = version.modified { fields.append(Field("Last-Modified", modified)) }
        if !faults.has(.noRanges) { fields.append(Field("Accept-Ranges", "bytes")) }
        if let known = head.ifNoneMatch, version.isNamed(in: known) {
            var response = Response(status: 304, to: head)
            response.fields = fields
            return response
        }
        if let digest = version.digest { fields.append(Field("Repr-Digest", "sha-256=:\(digest):")) }
        let announced = version.size + (faults[.short] ?? 0)
        var response: Response
        switch range(head, version, announced, faults) {
        case .whole:
            response = Response(status: 200, to: head)
            response.fields = fields + [Field("Content-Type", contentType(head.path))]
            response.setBody(first: 0, count: announced, of: version)
        case .part(let first, let last):
            response = Response(status: 206, to: head)
            response.fields = fields
            let shifted = min(first + (faults[.rangeShift] ?? 0), last)
            response.setPart(shifted, last, announced, version, type: contentType(head.path), faults)
        case .unsatisfiable:
            return plain(416, to: head, fields: [Field("Content-Range", "bytes */\(announced)")])
        }
        if faults.has(.short) { response.closes = true }
        if head.method == "HEAD" { response.body = [] }
        return response
    }

    private static func range(
        _ head: RequestHead, _ version: FileVersion, _ size: Int64, _ faults: AppliedFaults
    ) -> ByteRange {
        if faults.has(.noRanges) { return .whole }
        if faults.has(.unsatisfiable), head.range != nil { return .unsatisfiable }
        if let validator = head.ifRange {
            if faults.has(.ifRangeTag), validator.hasPrefix("\"") { return .whole }
            guard version.isMeant(byIfRange: validator) else { return .whole }
        }
        return ByteRange(header: head.range, size: size)
    }

    /// Announces `count` bytes and sends those of them that there are.
    private mutating func setBody(first: Int64, count: Int64, of version: FileVersion) {
        length = count
        change = version.change
        let sent = min(count, max(0, version.size - first))
        body = sent > 0 ? [.file(offset: first, count: sent)] : []
    }

    private mutating func setPart(
        _ first: Int64, _ last: Int64, _ size: Int64, _ version: FileVersion, type: String, _ faults: AppliedFaults
    ) {
        setBody(first: first, count: last - first + 1, of: version)
        if faults.has(.otherTag) {
            fields.removeAll { $0.name == "ETag" }
            fields.append(Field("ETag", Self.otherTag))
        }
        let range = "bytes \(first)-\(last)/\(size + (faults[.wrongTotal] ?? 0))"
        guard !faults.has(.multipart) else { return wrapPart(range, type) }
        fields.append(Field("Content-Type", type))
        if !faults.has(.noContentRange) { fields.append(Field("Content-Range", range)) }
    }

    private mutating func wrapPart(_ range: String, _ type: String) {
        let before = "--\(Self.boundary)\r\nContent-Type: \(type)\r\nContent-Range: \(range)\r\n\r\n"
        let after = "\r\n--\(Self.boundary)--\r\n"
        fields.append(Field("Content-Type", "multipart/byteranges; boundary=\(Self.boundary)"))
        length = length.map { $0 + Int64(before.utf8.count + after.utf8.count) }
        body = [.bytes(Array(before.utf8))] + body + [.bytes(Array(after.utf8))]
    }

    private static func contentType(_ path: String) -> String {
        let types = [
            ("json", "application/json"), ("plist", "application/x-plist"), ("mp4", "video/mp4"),
            ("zst", "application/zstd"), ("zip", "application/zip"),
        ]
        let lowered = path.lowercased()
        return types.first { lowered.hasSuffix("." + $0.0) }?.1 ?? "application/octet-stream"
    }
}
