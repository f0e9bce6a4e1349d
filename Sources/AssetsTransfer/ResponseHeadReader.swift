// Heads of responses out of the header lines that libcurl hands over one by one.
internal import AssetsModel

/// Collects the lines of one response; begins anew at each status line, so informational heads leave no trace.
struct ResponseHeadReader {
    /// Lines and bytes of one head; a server that sends more is up to no good.
    static let linesMax = 256
    static let bytesMax = 128 << 10

    enum Result: Equatable {
        case more
        /// The final head is whole.
        case head(TransportHead)
        /// Not a head.
        case malformed
    }

    private var head: TransportHead?
    private var bytes = 0
    private var isComplete = false

    /// Takes one line with its line end. What follows the final head (trailers) is ignored.
    mutating func line(_ line: UnsafeRawBufferPointer) -> Result {
        guard !isComplete else { return .more }
        bytes += line.count
        guard bytes <= Self.bytesMax else { return .malformed }
        let text = String(decoding: Self.trim(line), as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            guard let begun = Self.statusLine(text) else { return .malformed }
            head = begun
            return .more
        }
        guard var head else { return .malformed }
        if text.isEmpty { return finish(head) }
        guard head.headers.count < Self.linesMax else { return .malformed }
        // A folded line goes on with the value before it; nothing that we read is ever folded.
        guard let colon = text.firstIndex(of: ":"), text.utf8.first != 0x20 else { return .more }
        let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        head.headers.append(HeaderField(name: String(text[..<colon]), value: String(value)))
        self.head = head
        return .more
    }

    private mutating func finish(_ head: TransportHead) -> Result {
        guard head.status >= 200 else {
            self.head = nil
            return .more
        }
        isComplete = true
        return .head(head)
    }

    private static func statusLine(_ text: String) -> TransportHead? {
        let words = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, let status = ASCIIText.number(words[1]), (100...999).contains(status) else {
            return nil
        }
        return TransportHead(status: Int(status), httpVersion: String(words[0].dropFirst("HTTP/".count)))
    }

    private static func trim(_ line: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer> {
        var end = line.count
        while end > 0, [0x20, 0x09, 0x0D, 0x0A].contains(line[end - 1]) { end -= 1 }
        return line[..<end]
    }
}
