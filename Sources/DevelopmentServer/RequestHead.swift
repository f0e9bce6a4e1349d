// HTTP/1.1 requests: read strictly, because a development server should show a client's faults, not hide them.

/// What the server needs of a request.
struct RequestHead: Equatable {
    /// As it came; may be none we know.
    var method: String
    /// Decoded, relative, without `.` and empty components; empty for the root.
    var path: String
    /// Path and query as they came.
    var target = "/"
    /// The lower digit of HTTP/1.x.
    var minorVersion: Int
    var keepsAlive: Bool
    var range: String?
    var ifRange: String?
    var ifNoneMatch: String?
    var hasBody: Bool
}

/// A request that is answered with this status and nothing else, after which the connection is closed.
struct RequestFault: Error, Equatable {
    var status: Int
}

/// Reads request heads out of the bytes of a connection.
enum RequestParser {
    /// Bytes of the request line; nothing that is served has a longer name.
    static let lineMax = 8 << 10
    /// Bytes of line and headers together.
    static let headMax = 16 << 10
    /// Header fields of one request.
    static let fieldsMax = 100

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    /// The first head in `bytes` and its length; nil when more bytes are needed.
    static func parse(_ bytes: [UInt8]) throws(RequestFault) -> (head: RequestHead, length: Int)? {
        // Empty lines before a request are tolerated, as RFC 9112 asks.
        var start = 0
        while start + 1 < bytes.count, bytes[start] == carriageReturn, bytes[start + 1] == lineFeed { start += 2 }
        guard start < bytes.count else { return nil }
        // Tells binary noise at once, for example a client that speaks TLS to a plain port.
        guard isToken(bytes[start]) || bytes[start] == carriageReturn else { throw RequestFault(status: 400) }
        guard let lines = try lines(bytes, from: start) else { return nil }
        return (try head(lines.lines), lines.end)
    }

    /// The lines up to the empty one, and where the head ends.
    private static func lines(
        _ bytes: [UInt8], from start: Int
    ) throws(RequestFault) -> (lines: [ArraySlice<UInt8>], end: Int)? {
        var lines: [ArraySlice<UInt8>] = []
        var lineStart = start
        for index in start..<min(bytes.count, start + headMax) where bytes[index] == lineFeed {
            guard index > lineStart, bytes[index - 1] == carriageReturn else { throw RequestFault(status: 400) }
            let line = bytes[lineStart..<(index - 1)]
            if lines.isEmpty && line.count > lineMax { throw RequestFault(status: 414) }
            if line.isEmpty { return (lines, index + 1) }
            guard lines.count <= fieldsMax else { throw RequestFault(status: 431) }
            lines.append(line)
            lineStart = index + 1
        }
        if lines.isEmpty && bytes.count - start > lineMax { throw RequestFault(status: 414) }
        if bytes.count - start >= headMax { throw RequestFault(status: 431) }
        return nil
    }

    private static func head(_ lines: [ArraySlice<UInt8>]) throws(RequestFault) -> RequestHead {
        let parts = lines[0].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy(isToken) else { throw RequestFault(status: 400) }
        let minorVersion = try minorVersion(parts[2])
        let fields = try Fields(lines.dropFirst())
        guard fields.hosts == 1 || (minorVersion == 0 && fields.hosts == 0) else { throw RequestFault(status: 400) }
        let method = String(decoding: parts[0], as: UTF8.self)
        var head = RequestHead(
            method: method, path: try path(parts[1], method: method), minorVersion: minorVersion,
            keepsAlive: fields.closes ? false : minorVersion > 0 || fields.keepsAlive, range: fields.range,
            ifRange: fields.ifRange, ifNoneMatch: fields.ifNoneMatch, hasBody: fields.hasBody)
        head.target = try originForm(parts[1])
        return head
    }

    private static func minorVersion(_ text: ArraySlice<UInt8>) throws(RequestFault) -> Int {
        let bytes = Array(text)
        let isDigit: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), isDigit(bytes[5]), bytes[6] == UInt8(ascii: "."),
            isDigit(bytes[7])
        else { throw RequestFault(status: 400) }
        guard bytes[5] == UInt8(ascii: "1") else { throw RequestFault(status: 505) }
        return Int(bytes[7] - 0x30)
    }

    // MARK: Path

    private static func path(_ target: ArraySlice<UInt8>, method: String) throws(RequestFault) -> String {
        if isAsterisk(target) && method == "OPTIONS" { return "" }
        guard target.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw RequestFault(status: 400)
        }
        let origin = try withoutAuthority(target).prefix { $0 != UInt8(ascii: "?") }
        let decoded = try decode(origin)
        guard !decoded.contains(0), let text = String(validating: decoded, as: UTF8.self) else {
            throw RequestFault(status: 400)
        }
        let components = text.utf8.split(separator: UInt8(ascii: "/")).compactMap { String($0) }.filter { $0 != "." }
        guard !components.contains("..") else { throw RequestFault(status: 400) }
        return components.joined(separator: "/")
    }

    private static func isAsterisk(_ target: ArraySlice<UInt8>) -> Bool { Array(target) == [UInt8(ascii: "*")] }

    /// Path and query, without scheme and host.
    private static func originForm(_ target: ArraySlice<UInt8>) throws(RequestFault) -> String {
        if isAsterisk(target) { return "*" }
        let origin = String(decoding: try withoutAuthority(target), as: UTF8.self)
        return origin.hasPrefix("/") ? origin : "/" + origin
    }

    /// Proxies send the whole address; the path begins at the first slash after the host.
    private static func withoutAuthority(_ target: ArraySlice<UInt8>) throws(RequestFault) -> ArraySlice<UInt8> {
        if target.first == UInt8(ascii: "/") { return target }
        for scheme in ["http://", "https://"] where target.starts(with: scheme.utf8) {
            return target.dropFirst(scheme.utf8.count).drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        }
        throw RequestFault(status: 400)
    }

    private static func decode(_ text: ArraySlice<UInt8>) throws(RequestFault) -> [UInt8] {
        var decoded: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == UInt8(ascii: "%") {
                guard index + 2 < text.endIndex, let high = hexDigit(text[index + 1]),
                    let low = hexDigit(text[index + 2])
                else { throw RequestFault(status: 400) }
                decoded.append(high << 4 | low)
                index += 3
            } else {
                decoded.append(text[index])
                index += 1
            }
        }
        return decoded
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    // MARK: Fields

    private struct Fields {
        var hosts = 0
        var closes = false
        var keepsAlive = false
        var range: String?
        var ifRange: String?
        var ifNoneMatch: String?
        var hasBody = false

        init(_ lines: ArraySlice<ArraySlice<UInt8>>) throws(RequestFault) {
            var hasLength = false
            for line in lines {
                let (name, value) = try RequestParser.field(line)
                switch name {
                case "host": hosts += 1
                case "connection":
                    for token in value.lowercased().split(separator: ",") {
                        let token = token.drop { $0 == " " }.prefix { $0 != " " }
                        if token == "close" { closes = true }
                        if token == "keep-alive" { keepsAlive = true }
                    }
                case "range": range = range == nil ? value : try RequestParser.repeated()
                case "if-range": ifRange = ifRange == nil ? value : try RequestParser.repeated()
                case "if-none-match": ifNoneMatch = value
                case "transfer-encoding": hasBody = true
                case "content-length":
                    guard !hasLength, value.utf8.count <= 18, let length = UInt64(value) else {
                        throw RequestFault(status: 400)
                    }
                    hasLength = true
                    if length > 0 { hasBody = true }
                default: break
                }
            }
        }
    }

    private static func repeated() throws(RequestFault) -> String { throw RequestFault(status: 400) }

    private static func field(_ line: ArraySlice<UInt8>) throws(RequestFault) -> (name: String, value: String) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(isToken)
        else { throw RequestFault(status: 400) }
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        var value = line[(colon + 1)...].drop(while: isBlank)
        while let last = value.last, isBlank(last) { value.removeLast() }
        guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { throw RequestFault(status: 400) }
        return (String(decoding: line[..<colon], as: UTF8.self).lowercased(), String(decoding: value, as: UTF8.self))
    }

    /// A byte of a token of RFC 9110.
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
