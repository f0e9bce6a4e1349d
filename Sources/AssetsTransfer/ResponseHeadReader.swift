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
        let text = Self.trim(line)
        if text.starts(with: "HTTP/".utf8) {
            guard let begun = Self.statusLine(text) else { return .malformed }
            head = begun
            return .more
        }
        guard let begun = head else { return .malformed }
        if text.isEmpty { return finish(begun) }
        guard begun.headers.count < Self.linesMax else { return .malformed }
        // A folded line goes on with the value before it; nothing that we read is ever folded.
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), text.first != Self.space else { return .more }
        let value = text[(colon + 1)...].drop { Self.isBlank($0) }
        head?.headers.append(HeaderField(name: Self.string(text[..<colon]), value: Self.string(value)))
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

    private static func statusLine(_ text: Line) -> TransportHead? {
        let words = text.split(separator: space, maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, let status = ASCIIText.number(string(words[1])), (100...999).contains(status) else {
            return nil
        }
        return TransportHead(status: Int(status), httpVersion: string(words[0].dropFirst("HTTP/".utf8.count)))
    }

    // MARK: Bytes of a line

    private typealias Line = Slice<UnsafeRawBufferPointer>
    private static let space = UInt8(ascii: " ")

    private static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == UInt8(ascii: "\t") }

    private static func string(_ text: Line) -> String { String(decoding: text, as: UTF8.self) }

    private static func trim(_ line: UnsafeRawBufferPointer) -> Line {
        var end = line.count
        while end > 0, isBlank(line[end - 1]) || isLineEnd(line[end - 1]) { end -= 1 }
        return line[..<end]
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n") }
}
