// The varlink interface definition language, read for introspection and to hold code and interface files together.

/// One interface as its text defines it.
package struct InterfaceDescription: Hashable, Sendable {
    /// A field of a structure, of parameters or of a reply.
    package struct Field: Hashable, Sendable {
        package var name: String
        package var type: FieldType
    }

    package indirect enum FieldType: Hashable, Sendable {
        case bool
        case int
        case float
        case string
        /// Any JSON object.
        case object
        case named(String)
        case structure([Field])
        case enumeration([String])
        case array(FieldType)
        /// Keys are strings.
        case dictionary(FieldType)
        /// May be null or missing.
        case optional(FieldType)
    }

    package struct Method: Hashable, Sendable {
        package var name: String
        package var parameters: [Field]
        package var reply: [Field]
    }

    /// A named type, or an error with its parameters.
    package struct Definition: Hashable, Sendable {
        package var name: String
        package var type: FieldType
    }

    package var name: String
    package var types: [Definition] = []
    package var methods: [Method] = []
    package var errors: [Definition] = []

    /// Where a text is not a varlink interface, and why.
    package struct SyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
        package var line: Int
        package var expected: String
        package var description: String { "line \(line): expected \(expected)" }
    }

    package init(parsing text: String) throws(SyntaxError) {
        var parser = InterfaceParser(text)
        self = try parser.interface()
    }

    fileprivate init(name: String) { self.name = name }
}

/// A recursive descent over the bytes of a text.
private struct InterfaceParser {
    typealias FieldType = InterfaceDescription.FieldType
    typealias SyntaxError = InterfaceDescription.SyntaxError

    /// Structures within structures; more is no honest interface.
    private static let depthMax = 32

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func interface() throws(SyntaxError) -> InterfaceDescription {
        try keyword("interface")
        var interface = InterfaceDescription(name: try interfaceName())
        var names: Set<String> = []
        skipSpace()
        while position < bytes.count {
            let kind = word()
            let name = try memberName()
            guard names.insert(name).inserted else { throw expected("a name other than \(name), which is taken") }
            switch kind {
            case "type": interface.types.append(.init(name: name, type: try structureOrEnumeration()))
            case "error": interface.errors.append(.init(name: name, type: try structureOrEnumeration()))
            case "method":
                let parameters = try structure()
                try symbol("->")
                interface.methods.append(.init(name: name, parameters: parameters, reply: try structure()))
            default: throw expected("type, method or error")
            }
            skipSpace()
        }
        return interface
    }

    // MARK: Types

    private mutating func structure() throws(SyntaxError) -> [InterfaceDescription.Field] {
        guard case .structure(let fields) = try structureOrEnumeration() else { throw expected("fields with types") }
        return fields
    }

    /// `(a: int, b: ?string)` or `(one, two)`.
    private mutating func structureOrEnumeration() throws(SyntaxError) -> FieldType {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthMax else { throw expected("fewer structures within structures") }
        try symbol("(")
        if takeSymbol(")") { return .structure([]) }
        var fields: [InterfaceDescription.Field] = []
        var names: [String] = []
        repeat {
            let name = try fieldName()
            guard !names.contains(name) else { throw expected("a name other than \(name), which is taken") }
            names.append(name)
            if takeSymbol(":") { fields.append(.init(name: name, type: try type())) }
            guard fields.isEmpty || fields.count == names.count else { throw expected(": and a type") }
        } while takeSymbol(",")
        try symbol(")")
        return fields.isEmpty ? .enumeration(names) : .structure(fields)
    }

    private mutating func type() throws(SyntaxError) -> FieldType {
        if takeSymbol("?") {
            let inner = try type()
            if case .optional = inner { throw expected("one ? only") }
            return .optional(inner)
        }
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthMax else { throw expected("fewer types within types") }
        if takeSymbol("[]") { return .array(try type()) }
        if takeSymbol("[string]") { return .dictionary(try type()) }
        skipSpace()
        if position < bytes.count, bytes[position] == UInt8(ascii: "(") { return try structureOrEnumeration() }
        let name = word()
        switch name {
        case "bool": return .bool
        case "int": return .int
        case "float": return .float
        case "string": return .string
        case "object": return .object
        default:
            guard let first = name.utf8.first, Self.isUpper(first) else { throw expected("a type") }
            return .named(name)
        }
    }

    // MARK: Names

    /// Parts of letters, digits and inner hyphens, joined by dots; the first part begins with a letter.
    private mutating func interfaceName() throws(SyntaxError) -> String {
        skipSpace()
        let name = take { Self.isLetter($0) || Self.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        let isName =
            parts.count > 1 && Self.isLetter(name.utf8.first ?? 0)
            && parts.allSatisfy { !$0.isEmpty && !$0.hasPrefix("-") && !$0.hasSuffix("-") }
        guard isName else { throw expected("the name of the interface") }
        return name
    }

    private mutating func memberName() throws(SyntaxError) -> String {
        let name = word()
        guard let first = name.utf8.first, Self.isUpper(first), !name.contains("_") else {
            throw expected("a name that begins with a capital letter")
        }
        return name
    }

    private mutating func fieldName() throws(SyntaxError) -> String {
        let name = word()
        let isName =
            Self.isLetter(name.utf8.first ?? 0) && !name.hasSuffix("_") && !name.contains("__")
        guard isName else { throw expected("the name of a field") }
        return name
    }

    // MARK: Bytes

    private mutating func keyword(_ name: String) throws(SyntaxError) {
        guard word() == name else { throw expected(name) }
    }

    private mutating func word() -> String {
        skipSpace()
        return take { Self.isLetter($0) || Self.isDigit($0) || $0 == UInt8(ascii: "_") }
    }

    private mutating func take(while condition: (UInt8) -> Bool) -> String {
        let start = position
        while position < bytes.count, condition(bytes[position]) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func symbol(_ text: String) throws(SyntaxError) {
        guard takeSymbol(text) else { throw expected(text) }
    }

    private mutating func takeSymbol(_ text: String) -> Bool {
        skipSpace()
        guard bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    /// Spaces, line ends and comments up to the end of their line.
    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"): position += 1
            case UInt8(ascii: "#"):
                while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
            default: return
            }
        }
    }

    private func expected(_ what: String) -> SyntaxError {
        SyntaxError(line: bytes[..<position].count { $0 == UInt8(ascii: "\n") } + 1, expected: what)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        isUpper(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }
    private static func isUpper(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
