// Where containers are below a device's root: found the same way by service, apps and tests.

/// The folders of the containers of app groups and extensions.
///
/// A folder is called `<identifier>~<32 hexadecimal digits>`. An extension may ask for whatever it can name in the folder in
/// which its own containers lie, and cannot list it: nobody can name what ends in 128 random bits. What lies there is the
/// only record of the names.
package struct ContainerFolders: Hashable, Sendable {
    /// Whose containers they are. The value is the folder in which they lie, below the device's root.
    package enum Kind: String, CaseIterable, Sendable {
        case group = "Containers/Group"
        case appExtension = "Containers/Extension"
    }

    /// Bytes of an identifier: the name of its folder fits into the 255 that file systems have for a name.
    package static let identifierLengthMax = 255 - 1 - digitCount
    private static let digitCount = 32
    private static let mark = UInt8(ascii: "~")

    private struct Owner: Hashable {
        var kind: Kind
        var identifier: String
    }

    /// Paths below the device's root.
    private var folders: [Owner: String] = [:]

    /// No containers.
    package init() {}

    /// What lies in the folders of all kinds. A name that is not made as ours are is nobody's; of two folders of one
    /// identifier the first in the order of bytes is its container.
    ///
    /// - Parameters:
    ///   - leaving: Paths of folders that are being removed.
    ///   - list: The names in a folder below the device's root.
    package init<Failure: Error>(
        leaving: Set<String> = [], list: (String) throws(Failure) -> [String]
    ) throws(Failure) {
        for kind in Kind.allCases {
            let names = try list(kind.rawValue).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            for name in names {
                let path = "\(kind.rawValue)/\(name)"
                guard let identifier = Self.identifier(in: name), self[kind, identifier] == nil,
                    !leaving.contains(path)
                else { continue }
                folders[Owner(kind: kind, identifier: identifier)] = path
            }
        }
    }

    /// The folder below the device's root; nil where there is none.
    package subscript(kind: Kind, identifier: String) -> String? {
        folders[Owner(kind: kind, identifier: identifier)]
    }

    /// The folder below the device's root; where there is none, how it is to be called from now on.
    package mutating func folder(_ kind: Kind, of identifier: String, random: any RandomSource) -> String {
        if let known = self[kind, identifier] { return known }
        let path = "\(kind.rawValue)/\(Self.name(of: identifier, random.next(), random.next()))"
        folders[Owner(kind: kind, identifier: identifier)] = path
        return path
    }

    /// That folder is nobody's container any more.
    package mutating func remove(_ path: String) { folders = folders.filter { $0.value != path } }

    // MARK: Names

    package static func name(of identifier: String, _ high: UInt64, _ low: UInt64) -> String {
        let digits = [high, low].map { half in
            let text = String(half, radix: 16)
            return String(repeating: "0", count: digitCount / 2 - text.count) + text
        }
        return identifier + "~" + digits.joined()
    }

    /// Whose container a folder of that name is; nil for others.
    private static func identifier(in name: String) -> String? {
        guard let place = name.utf8.lastIndex(of: mark), place != name.utf8.startIndex else { return nil }
        let digits = name.utf8[name.utf8.index(after: place)...]
        let areDigits = digits.allSatisfy { byte in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        return areDigits && digits.count == digitCount ? String(name[..<place]) : nil
    }
}

/// An app group with the folder of its container.
package struct GroupContainer: Hashable, Sendable {
    package var identifier: String
    /// Below the device's root.
    package var folder: String

    package init(identifier: String, folder: String) {
        self.identifier = identifier
        self.folder = folder
    }
}
