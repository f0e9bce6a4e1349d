// A name from an archive or a folder, checked before anything is made of it.

/// A relative path of plain components: no `.`, no `..`, nothing empty, no control characters.
struct EntryPath: Hashable {
    /// Bytes of one component: what Linux file systems take.
    static let componentLengthMax = 255

    enum Fault: Error, Equatable {
        case notText
        case controlCharacter
        case absolute
        case parent
        case empty
        case tooLong
        case tooDeep

        /// What is wrong, to follow the name in a sentence.
        var explanation: String {
            switch self {
            case .notText: "is not valid UTF-8"
            case .controlCharacter: "holds a control character"
            case .absolute: "is an absolute path"
            case .parent: "leaves its folder through \"..\""
            case .empty: "is empty"
            case .tooLong: "is too long"
            case .tooDeep: "lies too deep"
            }
        }
    }

    let components: [String]

    /// Components `.` and slashes too many are dropped, as tar writes them.
    init(bytes: [UInt8], limits: StagingLimits) throws(Fault) {
        guard bytes.count <= limits.pathLengthMax else { throw .tooLong }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .notText }
        guard !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw .controlCharacter
        }
        guard bytes.first != UInt8(ascii: "/") else { throw .absolute }
        let components = text.utf8.split(separator: UInt8(ascii: "/")).compactMap { String($0) }.filter { $0 != "." }
        guard !components.contains("..") else { throw .parent }
        guard !components.isEmpty else { throw .empty }
        guard components.allSatisfy({ $0.utf8.count <= Self.componentLengthMax }) else { throw .tooLong }
        guard components.count <= limits.depthMax else { throw .tooDeep }
        self.components = components
    }

    var parent: ArraySlice<String> { components.dropLast() }
    /// The last component.
    var name: String { components[components.count - 1] }
    /// The first component: the bundle's folder.
    var top: String { components[0] }
    var text: String { components.joined(separator: "/") }
}

/// Bytes made readable: what is not text or could move a terminal's cursor is replaced; cut after some 200 bytes.
func printable(_ bytes: some Sequence<UInt8>) -> String {
    let printedMax = 200
    var result = ""
    for scalar in String(decoding: Array(bytes.prefix(printedMax)), as: UTF8.self).unicodeScalars {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse:
            result.unicodeScalars.append("\u{FFFD}")
        default:
            result.unicodeScalars.append(scalar)
        }
    }
    return result
}
