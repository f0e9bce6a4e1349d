// Messages as values, read in one go: the way for all that is sound and simple.

/// Reads JSON text whose strings have no escapes and whose numbers are whole. What is not so, or is not wanted so, is an
/// error without a place: a general decoder then tells what it is.
struct WireDecoder: Decoder {
    /// Not for this decoder.
    struct Unusual: Error {}

    let document: WireDocument
    let index: Int
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any]

    static func decode<T: Decodable>(
        _ type: T.Type, _ frame: UnsafeRawBufferPointer, userInfo: [CodingUserInfoKey: Any] = [:]
    ) throws -> T {
        guard let document = WireDocument(frame) else { throw Unusual() }
        return try document.value(type, at: 0, userInfo)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard document.nodes[index].kind == .object else { throw Unusual() }
        return KeyedDecodingContainer(Members<Key>(document: document, index: index, userInfo: userInfo))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard document.nodes[index].kind == .array else { throw Unusual() }
        return Elements(document: document, index: index, userInfo: userInfo)
    }
    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        Single(document: document, index: index, userInfo: userInfo)
    }
}

/// A text taken apart: its values in their order, each with the place of what follows it.
final class WireDocument {
    /// Levels of nesting: messages have half a dozen.
    private static let depthMax = 16

    enum Kind { case object, array, string, number, yes, no, null }

    struct Node {
        var kind: Kind
        /// Bytes of a string without its quotes, or of a number.
        var start: Int
        var count: Int
        /// The index of the first node that is not inside this one.
        var next: Int
    }

    /// Valid while `WireDecoder.decode` runs.
    private let text: UnsafeRawBufferPointer
    private(set) var nodes: [Node] = []
    private var place = 0

    /// nil for what is not sound and simple.
    init?(_ text: UnsafeRawBufferPointer) {
        self.text = text
        nodes.reserveCapacity(text.count / 12 + 4)
        guard value(depth: 0) else { return nil }
        skipSpace()
        guard place == text.count, isUTF8 else { return nil }
    }

    private var isUTF8: Bool {
        guard text.contains(where: { $0 >= 0x80 }) else { return true }
        return String(validating: text.bindMemory(to: UInt8.self), as: UTF8.self) != nil
    }

    // MARK: Taking apart

    private func skipSpace() {
        while place < text.count, [0x20, 0x0A, 0x0D, 0x09].contains(text[place]) { place += 1 }
    }

    private func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard place < text.count, text[place] == byte else { return false }
        place += 1
        return true
    }

    private func value(depth: Int) -> Bool {
        skipSpace()
        guard place < text.count, depth < Self.depthMax else { return false }
        switch text[place] {
        case UInt8(ascii: "{"): return members(depth)
        case UInt8(ascii: "["): return elements(depth)
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: "t"): return word("true", .yes)
        case UInt8(ascii: "f"): return word("false", .no)
        case UInt8(ascii: "n"): return word("null", .null)
        default: return number()
        }
    }

    private func members(_ depth: Int) -> Bool {
        let index = begin(.object)
        if take(UInt8(ascii: "}")) { return end(index) }
        repeat {
            skipSpace()
            guard place < text.count, text[place] == UInt8(ascii: "\""), string(), take(UInt8(ascii: ":")),
                value(depth: depth + 1)
            else { return false }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}")) && end(index)
    }

    private func elements(_ depth: Int) -> Bool {
        let index = begin(.array)
        if take(UInt8(ascii: "]")) { return end(index) }
        repeat {
            guard value(depth: depth + 1) else { return false }
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]")) && end(index)
    }

    private func begin(_ kind: Kind) -> Int {
        place += 1
        nodes.append(Node(kind: kind, start: place, count: 0, next: 0))
        return nodes.count - 1
    }

    private func end(_ index: Int) -> Bool {
        nodes[index].next = nodes.count
        return true
    }

    private func add(_ kind: Kind, _ start: Int, _ count: Int) -> Bool {
        nodes.append(Node(kind: kind, start: start, count: count, next: nodes.count + 1))
        return true
    }

    private func string() -> Bool {
        let start = place + 1
        var end = start
        while end < text.count, text[end] != UInt8(ascii: "\"") {
            guard text[end] >= 0x20, text[end] != UInt8(ascii: "\\") else { return false }
            end += 1
        }
        guard end < text.count else { return false }
        place = end + 1
        return add(.string, start, end - start)
    }

    private func word(_ word: StaticString, _ kind: Kind) -> Bool {
        let start = place
        guard place + word.utf8CodeUnitCount <= text.count else { return false }
        for offset in 0..<word.utf8CodeUnitCount where text[start + offset] != word.utf8Start[offset] { return false }
        place += word.utf8CodeUnitCount
        return add(kind, start, 0)
    }

    /// Whole ones that surely fit: no zero in front, at most 18 digits.
    private func number() -> Bool {
        let start = place
        var digits = start
        if text[digits] == UInt8(ascii: "-") { digits += 1 }
        var end = digits
        while end < text.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[end]) { end += 1 }
        guard end > digits, end - digits <= 18, end - digits == 1 || text[digits] != UInt8(ascii: "0") else {
            return false
        }
        // A fraction or an exponent.
        if end < text.count, [UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E")].contains(text[end]) {
            return false
        }
        place = end
        return add(.number, start, end - start)
    }

    // MARK: Values

    func string(at index: Int) throws -> String {
        let node = nodes[index]
        guard node.kind == .string,
            let value = String(
                validating: UnsafeRawBufferPointer(rebasing: text[node.start..<node.start + node.count])
                    .bindMemory(to: UInt8.self), as: UTF8.self)
        else { throw WireDecoder.Unusual() }
        return value
    }

    func number(at index: Int) throws -> Int64 {
        let node = nodes[index]
        guard node.kind == .number else { throw WireDecoder.Unusual() }
        var value: Int64 = 0
        let isNegative = text[node.start] == UInt8(ascii: "-")
        for place in node.start + (isNegative ? 1 : 0)..<node.start + node.count {
            value = value * 10 + Int64(text[place] - UInt8(ascii: "0"))
        }
        return isNegative ? -value : value
    }

    func whole<N: BinaryInteger>(_ type: N.Type, at index: Int) throws -> N {
        guard let value = N(exactly: try number(at: index)) else { throw WireDecoder.Unusual() }
        return value
    }

    func truth(at index: Int) throws -> Bool {
        switch nodes[index].kind {
        case .yes: return true
        case .no: return false
        case .object, .array, .string, .number, .null: throw WireDecoder.Unusual()
        }
    }

    func isNull(at index: Int) -> Bool { nodes[index].kind == .null }

    func value<T: Decodable>(_ type: T.Type, at index: Int, _ userInfo: [CodingUserInfoKey: Any]) throws -> T {
        try T(from: WireDecoder(document: self, index: index, userInfo: userInfo))
    }

    func isName(_ name: String, at index: Int) -> Bool {
        let node = nodes[index]
        var name = name
        return name.withUTF8 { utf8 in
            utf8.count == node.count
                && UnsafeRawBufferPointer(rebasing: text[node.start..<node.start + node.count]).elementsEqual(utf8)
        }
    }
}

/// The members of an object.
private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let document: WireDocument
    let index: Int
    let userInfo: [CodingUserInfoKey: Any]
    let codingPath: [any CodingKey] = []

    var allKeys: [Key] {
        var found: [Key] = []
        var name = index + 1
        while name < document.nodes[index].next {
            if let key = (try? document.string(at: name)).flatMap({ Key(stringValue: $0) }) { found.append(key) }
            name = document.nodes[name + 1].next
        }
        return found
    }

    private func place(_ key: Key) -> Int? {
        let wanted = key.stringValue
        var name = index + 1
        while name < document.nodes[index].next {
            if document.isName(wanted, at: name) { return name + 1 }
            name = document.nodes[name + 1].next
        }
        return nil
    }

    private func existing(_ key: Key) throws -> Int {
        guard let place = place(key) else { throw WireDecoder.Unusual() }
        return place
    }

    /// nil for a member that is missing or null.
    private func present(_ key: Key) -> Int? { place(key).flatMap { document.isNull(at: $0) ? nil : $0 } }

    func contains(_ key: Key) -> Bool { place(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { document.isNull(at: try existing(key)) }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try document.truth(at: existing(key)) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try document.string(at: existing(key)) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try document.whole(type, at: existing(key)) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try document.number(at: existing(key)) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try document.value(type, at: existing(key), userInfo)
    }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try present(key).map { try document.truth(at: $0) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try present(key).map { try document.string(at: $0) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try present(key).map { try document.number(at: $0) }
    }
    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try present(key).map { try document.value(type, at: $0, userInfo) }
    }

    // What our messages do not have.
    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw WireDecoder.Unusual() }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw WireDecoder.Unusual() }
    func superDecoder() throws -> any Decoder { throw WireDecoder.Unusual() }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw WireDecoder.Unusual() }
}

/// The elements of an array, one after the other.
private struct Elements: UnkeyedDecodingContainer {
    let document: WireDocument
    let userInfo: [CodingUserInfoKey: Any]
    let codingPath: [any CodingKey] = []
    let count: Int? = nil
    private let end: Int
    private var place: Int
    private(set) var currentIndex = 0

    init(document: WireDocument, index: Int, userInfo: [CodingUserInfoKey: Any]) {
        self.document = document
        self.userInfo = userInfo
        end = document.nodes[index].next
        place = index + 1
    }

    var isAtEnd: Bool { place >= end }

    private mutating func next() throws -> Int {
        guard !isAtEnd else { throw WireDecoder.Unusual() }
        defer {
            place = document.nodes[place].next
            currentIndex += 1
        }
        return place
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, document.isNull(at: place) else { return false }
        _ = try next()
        return true
    }
    mutating func decode(_ type: String.Type) throws -> String { try document.string(at: next()) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try document.number(at: next()) }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try document.value(type, at: next(), userInfo) }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { throw WireDecoder.Unusual() }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { throw WireDecoder.Unusual() }
    mutating func superDecoder() throws -> any Decoder { throw WireDecoder.Unusual() }
}

/// A value that is no object and no array.
private struct Single: SingleValueDecodingContainer {
    let document: WireDocument
    let index: Int
    let userInfo: [CodingUserInfoKey: Any]
    let codingPath: [any CodingKey] = []

    func decodeNil() -> Bool { document.isNull(at: index) }
    func decode(_ type: Bool.Type) throws -> Bool { try document.truth(at: index) }
    func decode(_ type: String.Type) throws -> String { try document.string(at: index) }
    func decode(_ type: Double.Type) throws -> Double { Double(try document.number(at: index)) }
    func decode(_ type: Float.Type) throws -> Float { Float(try document.number(at: index)) }
    func decode(_ type: Int.Type) throws -> Int { try document.whole(type, at: index) }
    func decode(_ type: Int8.Type) throws -> Int8 { try document.whole(type, at: index) }
    func decode(_ type: Int16.Type) throws -> Int16 { try document.whole(type, at: index) }
    func decode(_ type: Int32.Type) throws -> Int32 { try document.whole(type, at: index) }
    func decode(_ type: Int64.Type) throws -> Int64 { try document.number(at: index) }
    func decode(_ type: UInt.Type) throws -> UInt { try document.whole(type, at: index) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try document.whole(type, at: index) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try document.whole(type, at: index) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try document.whole(type, at: index) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try document.whole(type, at: index) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try document.value(type, at: index, userInfo) }
}
