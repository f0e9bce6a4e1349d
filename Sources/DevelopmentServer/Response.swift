// What is sent for a request: decided here, sent by the connection.
internal import AssetsOS

/// A piece of a body.
enum BodyPart: Equatable {
    case bytes([UInt8])
    /// So many bytes of the file from an offset on.
    case file(offset: Int64, count: Int64)
}

/// What is done to a file's bytes on their way.
struct ByteChange: Equatable {
    /// Every byte is combined with it.
    var mask: UInt8 = 0
    /// The byte that is inverted.
    var inverted: Int64?

    var isNone: Bool { mask == 0 && inverted == nil }

    /// Changes bytes that lie at `offset` of the file.
    func apply(to bytes: inout [UInt8], at offset: Int64) {
        if mask != 0 { for index in bytes.indices { bytes[index] ^= mask } }
        if let inverted, inverted >= offset, inverted < offset + Int64(bytes.count) {
            bytes[Int(inverted - offset)] ^= 0xFF
        }
    }
}

/// An answer: a head, then the parts of a body.
struct Response: Equatable {
    struct Field: Equatable {
        var name: String
        var value: String
        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    var status: Int
    var fields: [Field] = []
    /// Announced as Content-Length; nil when the body's end shows in another way, or there is none.
    var length: Int64?
    var body: [BodyPart] = []
    var change = ByteChange()
    /// Whether the connection is closed afterwards.
    var closes: Bool
    /// A client of HTTP/1.0 has to be told that the connection stays.
    var saysKeepAlive = false
    /// The lower digit of HTTP/1.x in the status line.
    var minorVersion = 1
    /// Heads that come before it.
    var informational = 0
    /// Sent in place of everything else.
    var noise: [UInt8]?

    /// An answer to a request that was read; `head` is nil where it could not be.
    init(status: Int, to head: RequestHead?) {
        self.status = status
        // A body that was announced is not read; the connection cannot go on behind it.
        closes = head.map { !$0.keepsAlive || $0.hasBody } ?? true
        saysKeepAlive = !closes && head?.minorVersion == 0
    }

    /// An answer that says its status and nothing more.
    static func plain(_ status: Int, to head: RequestHead?, fields: [Field] = []) -> Response {
        .text("\(status) \(phrase(status))\n", type: "text/plain", status: status, to: head, fields: fields)
    }

    /// An answer with a text of its own.
    static func text(
        _ text: String, type: String, status: Int, to head: RequestHead?, fields: [Field] = []
    ) -> Response {
        var response = Response(status: status, to: head)
        response.fields = [Field("Content-Type", type)] + fields
        response.length = Int64(text.utf8.count)
        if head?.method != "HEAD" { response.body = [.bytes(Array(text.utf8))] }
        return response
    }

    /// Status line and fields as they are sent.
    func head(now: Duration) -> [UInt8] {
        if let noise { return noise }
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </>; rel=preload\r\n\r\n"
        var text = String(repeating: early, count: informational)
        text += "HTTP/1.\(minorVersion) \(status) \(Self.phrase(status))\r\n"
        text += "Date: \(HTTPDate.format(now.components.seconds))\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        if let length { text += "Content-Length: \(length)\r\n" }
        if closes {
            text += "Connection: close\r\n"
        } else if saysKeepAlive {
            text += "Connection: keep-alive\r\n"
        }
        return Array((text + "\r\n").utf8)
    }

    private static func phrase(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 302: "Found"
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
