// The Range header: one range of bytes; several at once are answered with the whole file, as RFC 9110 allows.

/// What a Range header asks of a file.
enum ByteRange: Equatable {
    /// No range, several, another unit or none we can read: the whole file.
    case whole
    /// From the first to the last byte, both included.
    case part(first: Int64, last: Int64)
    /// Outside the file.
    case unsatisfiable

    init(header: String?, size: Int64) {
        guard let header, header.lowercased().hasPrefix("bytes=") else {
            self = .whole
            return
        }
        let text = header.dropFirst(6)
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard !text.contains(","), parts.count == 2, let first = Self.number(parts[0]), let last = Self.number(parts[1])
        else {
            self = .whole
            return
        }
        switch (first, last) {
        case (nil, nil): self = .whole
        case (nil, let suffix?):
            self = suffix == 0 || size == 0 ? .unsatisfiable : .part(first: max(0, size - suffix), last: size - 1)
        case (let first?, let last):
            if let last, last < first {
                self = .whole
            } else {
                self = first >= size ? .unsatisfiable : .part(first: first, last: min(last ?? .max, size - 1))
            }
        }
    }

    /// Outer nil: not a number; inner nil: empty. Numbers beyond Int64 count as its largest.
    private static func number(_ text: Substring) -> Int64?? {
        if text.isEmpty { return .some(nil) }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return .some(Int64(text) ?? .max)
    }
}
