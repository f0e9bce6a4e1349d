// What is sent for a request: decided here, sent by the connection.
internal import AssetsOS
internal import Glibc

/// A file that is being sent.
final class ServedFile {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// An answer with the part of a file that follows its head.
struct Response {
    var status: Int
    /// Status line and headers, or with them a small body.
    var head: [UInt8]
    var file: ServedFile?
    var offset: Int64 = 0
    /// Bytes of the file still to be sent.
    var remaining: Int64 = 0
    /// Whether the connection is closed afterwards.
    var closes: Bool

    /// An answer that says its status and nothing more.
    static func plain(
        _ status: Int, head: RequestHead?, now: Duration, fields: [(String, String)] = []
    ) -> Response {
        let text = "\(status) \(phrase(status))\n"
        // A body that was announced is not read; the connection cannot go on behind it.
        let closes = head.map { !$0.keepsAlive || $0.hasBody } ?? true
        var bytes = headBytes(
            status, [("Content-Type", "text/plain")] + fields, length: Int64(text.utf8.count), closes: closes,
            head: head, now: now)
        if head?.method != "HEAD" { bytes += Array(text.utf8) }
        return Response(status: status, head: bytes, file: nil, closes: closes)
    }

    /// The file, a part of it, or why not.
    static func file(
        _ file: ServedFile, status info: stat, head: RequestHead, takesRanges: Bool, now: Duration
    ) -> Response {
        let size = Int64(info.st_size)
        let tag = entityTag(info)
        let modified = HTTPDate.format(Int64(info.st_mtim.tv_sec))
        var fields = [("ETag", tag), ("Last-Modified", modified)]
        if takesRanges { fields.append(("Accept-Ranges", "bytes")) }
        if let known = head.ifNoneMatch, matches(known, tag: tag) {
            return Response(
                status: 304, head: headBytes(304, fields, length: nil, closes: !head.keepsAlive, head: head, now: now),
                file: nil, closes: !head.keepsAlive)
        }
        var range = ByteRange.whole
        if takesRanges, head.ifRange.map({ $0 == tag || $0 == modified }) ?? true {
            range = ByteRange(header: head.range, size: size)
        }
        fields.append(("Content-Type", contentType(head.path)))
        var (status, first, length) = (200, Int64(0), size)
        switch range {
        case .whole: break
        case .part(let from, let last):
            (status, first, length) = (206, from, last - from + 1)
            fields.append(("Content-Range", "bytes \(from)-\(last)/\(size)"))
        case .unsatisfiable:
            return plain(416, head: head, now: now, fields: [("Content-Range", "bytes */\(size)")])
        }
        let bytes = headBytes(status, fields, length: length, closes: !head.keepsAlive, head: head, now: now)
        return Response(
            status: status, head: bytes, file: file, offset: first, remaining: head.method == "HEAD" ? 0 : length,
            closes: !head.keepsAlive)
    }

    /// Changes whenever the file does: replaced (inode), grown (size) or written (time).
    private static func entityTag(_ info: stat) -> String {
        let parts = [
            UInt64(info.st_ino), UInt64(bitPattern: Int64(info.st_size)),
            UInt64(bitPattern: Int64(info.st_mtim.tv_sec)), UInt64(bitPattern: Int64(info.st_mtim.tv_nsec)),
        ]
        return "\"" + parts.map { String($0, radix: 16) }.joined(separator: "-") + "\""
    }

    private static func matches(_ list: String, tag: String) -> Bool {
        list.split(separator: ",").contains { item in
            var item = item.drop { $0 == " " }
            while item.last == " " { item.removeLast() }
            if item.hasPrefix("W/") { item = item.dropFirst(2) }
            return item == "*" || item == tag
        }
    }

    private static func headBytes(
        _ status: Int, _ fields: [(String, String)], length: Int64?, closes: Bool, head: RequestHead?, now: Duration
    ) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(phrase(status))\r\nDate: \(HTTPDate.format(now.components.seconds))\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let length { text += "Content-Length: \(length)\r\n" }
        if closes {
            text += "Connection: close\r\n"
        } else if head?.minorVersion == 0 {
            text += "Connection: keep-alive\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    private static func contentType(_ path: String) -> String {
        let types = [
            ("json", "application/json"), ("plist", "application/x-plist"), ("mp4", "video/mp4"),
            ("zst", "application/zstd"), ("zip", "application/zip"),
        ]
        let lowered = path.lowercased()
        return types.first { lowered.hasSuffix("." + $0.0) }?.1 ?? "application/octet-stream"
    }

    private static func phrase(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 410: "Gone"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 416: "Range Not Satisfiable"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: status < 500 ? "Client Error" : "Server Error"
        }
    }
}
