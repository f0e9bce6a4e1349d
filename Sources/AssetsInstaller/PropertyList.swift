// Property lists that somebody else wrote: read once, asked key by key.
internal import AssetsModel
internal import AssetsOS
internal import FoundationEssentials
internal import Glibc

/// A dictionary of a property list, and where it stands, so that errors can name file and key.
struct PropertyList {
    /// Bytes of one file.
    static let sizeMax = 1 << 20
    /// Arrays and dictionaries of one file. The decoder recurses without a limit and would overflow its stack
    /// somewhere beyond 4000 inside each other.
    static let containersMax = 1000

    /// Path of the file with its bundle, and the dictionary's key in it.
    let shown: String
    private let content: Content

    /// Reads the file at `path` below `bundle`.
    init(_ bundle: borrowing Descriptor, path: String, shown: String) throws(AssetsError) {
        let bytes: [UInt8]
        do throws(SystemCallError) {
            bytes = try Self.read(bundle, path: path)
        } catch {
            switch error.number {
            case ENOENT: throw AssetsError(.bundleInvalid, "\(shown) is missing", remedy: "Add it to the bundle")
            case ELOOP: throw AssetsError(.bundleInvalid, "\(shown) is a link", remedy: "Put the file itself there")
            case EFBIG: throw AssetsError(.bundleInvalid, "\(shown) is larger than \(Self.sizeMax) bytes")
            default: throw AssetsError(.bundleInvalid, "\(shown) cannot be read: \(error)")
            }
        }
        try self.init(bytes: bytes, shown: shown)
    }

    init(bytes: [UInt8], shown: String) throws(AssetsError) {
        self.shown = shown
        let invalid = AssetsError(
            .bundleInvalid, "\(shown) is not a property list with a dictionary",
            remedy: "Write it as XML or binary property list")
        guard Self.isAcceptable(bytes) else { throw invalid }
        do { content = try PropertyListDecoder().decode(Content.self, from: Data(bytes)) } catch { throw invalid }
    }

    private init(shown: String, content: Content) {
        self.shown = shown
        self.content = content
    }

    // MARK: Asking

    func has(_ key: String) -> Bool { content.container.contains(Key(key)) }

    func string(_ key: String) throws(AssetsError) -> String? { try value(key, String.self, expected: "a string") }

    func requiredString(_ key: String) throws(AssetsError) -> String {
        guard let text = try string(key), !text.isEmpty else {
            throw error(key, "is missing or empty", remedy: "Add it as a string")
        }
        return text
    }

    func bool(_ key: String) throws(AssetsError) -> Bool? { try value(key, Bool.self, expected: "a boolean") }

    /// A number of bytes: a whole number from 0 on.
    func bytes(_ key: String) throws(AssetsError) -> Int64? {
        let expected = "a number of bytes"
        guard has(key) else { return nil }
        if let whole = try? content.container.decode(Int64.self, forKey: Key(key)) {
            guard whole >= 0 else { throw error(key, "is negative", remedy: "Give \(expected), 0 or more") }
            return whole
        }
        let number = try value(key, Double.self, expected: expected) ?? 0
        guard number >= 0, let whole = Int64(exactly: number) else {
            throw error(key, "is \(number)", remedy: "Give \(expected), 0 or more, without a fraction")
        }
        return whole
    }

    func strings(_ key: String, limit: Int) throws(AssetsError) -> [String]? {
        guard let strings = try value(key, [String].self, expected: "an array of strings") else { return nil }
        guard strings.count <= limit else { throw error(key, "has more than \(limit) items") }
        return strings
    }

    func dictionary(_ key: String) throws(AssetsError) -> PropertyList? {
        guard let content = try value(key, Content.self, expected: "a dictionary") else { return nil }
        return PropertyList(shown: "\(shown), \(key)", content: content)
    }

    func dictionaries(_ key: String, limit: Int) throws(AssetsError) -> [PropertyList]? {
        guard let contents = try value(key, [Content].self, expected: "an array of dictionaries") else { return nil }
        guard contents.count <= limit else { throw error(key, "has more than \(limit) items") }
        return contents.map { PropertyList(shown: "\(shown), \(key)", content: $0) }
    }

    /// The dictionary's keys, in a fixed order.
    var names: [String] { content.container.allKeys.map(\.stringValue).sorted() }

    /// An error that names file and key: "<file>: <key> <what>".
    func error(_ key: String, _ what: String, remedy: String = "") -> AssetsError {
        AssetsError(.bundleInvalid, "\(shown): \(key) \(what)", remedy: remedy)
    }

    private func value<V: Decodable>(_ key: String, _ type: V.Type, expected: String) throws(AssetsError) -> V? {
        guard has(key) else { return nil }
        do { return try content.container.decode(type, forKey: Key(key)) } catch {
            throw self.error(key, "is not \(expected)", remedy: "Write it as \(expected)")
        }
    }

    // MARK: Reading

    private static func read(_ bundle: borrowing Descriptor, path: String) throws(SystemCallError) -> [UInt8] {
        let file = try bundle.open(beneath: path, flags: O_RDONLY | O_NONBLOCK)
        let fd = file.rawValue
        var bytes = [UInt8](repeating: 0, count: sizeMax + 1)
        var count = 0
        while count < bytes.count {
            let more = try check("read") {
                bytes.withUnsafeMutableBytes { buffer in
                    Glibc.read(fd, buffer.baseAddress?.advanced(by: count), buffer.count - count)
                }
            }
            if more == 0 { break }
            count += more
        }
        guard count <= sizeMax else { throw SystemCallError(call: "read", number: EFBIG) }
        return Array(bytes[..<count])
    }

    /// Binary, or XML in UTF-8 without too many containers. Old-style lists are not taken.
    private static func isAcceptable(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: "bplist00".utf8) { return true }
        let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let text = bytes.starts(with: byteOrderMark) ? bytes[3...] : bytes[...]
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard text.first(where: { !isSpace($0) }) == UInt8(ascii: "<"), !bytes.contains(0) else { return false }
        var containers = 0
        for index in text.indices.dropLast(2) where text[index] == UInt8(ascii: "<") {
            let first = text[index + 1]
            if first == UInt8(ascii: "a") || (first == UInt8(ascii: "d") && text[index + 2] == UInt8(ascii: "i")) {
                containers += 1
            }
        }
        return containers <= containersMax
    }

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ text: String) { stringValue = text }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private struct Content: Decodable {
        let container: KeyedDecodingContainer<Key>
        init(from decoder: any Decoder) throws { container = try decoder.container(keyedBy: Key.self) }
    }
}
