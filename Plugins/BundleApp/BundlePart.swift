// The app or its extension: what it is called, what it declares, and what was built of it.
import Foundation

/// One of the two programs of a bundle.
struct BundlePart {
    enum Kind {
        case app, appExtension

        var option: String { self == .app ? "--app" : "--extension" }
        /// How the executable finds the libraries in the app's Frameworks folder.
        var libraryPath: String { self == .app ? "$ORIGIN/Frameworks" : "$ORIGIN/../../Frameworks" }
    }

    static let groupsKey = "com.apple.security.application-groups"

    let kind: Kind
    let product: String
    /// The property list as it goes into the bundle.
    let info: Data
    let entitlements: Data
    let identifier: String
    /// Name of the executable's file in the bundle.
    let executable: String
    let groups: [String]
    /// The executable that was built; empty before.
    var built = URL(filePath: "/")
    /// Every target that is linked into it.
    var targets: [String] = []

    /// Reads the property lists.
    init(kind: Kind, product: String, info: URL, entitlements: URL, values: [(key: String, value: String)]) throws {
        self.kind = kind
        self.product = product
        var (list, format) = try Self.read(info, "\(kind.option)-info")
        for (key, value) in values { try Self.set(key, to: value, in: &list, of: info) }
        identifier = try Self.text("CFBundleIdentifier", in: list, of: info)
        executable = try Self.text("CFBundleExecutable", in: list, of: info)
        guard !executable.contains("/"), executable != ".", executable != ".." else {
            throw BundleError("CFBundleExecutable in \(info.path) is a path", "give the name of a file")
        }
        self.info = try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0)
        (list, format) = try Self.read(entitlements, "\(kind.option)-entitlements")
        groups = list[Self.groupsKey] as? [String] ?? []
        guard !groups.isEmpty else {
            throw BundleError(
                "\(entitlements.path) names no app group",
                "add \(Self.groupsKey) with the group app and extension share")
        }
        self.entitlements = try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0)
    }

    private typealias List = ([String: Any], PropertyListSerialization.PropertyListFormat)

    private static func read(_ url: URL, _ option: String) throws -> List {
        guard let data = try? Data(contentsOf: url) else {
            throw BundleError("\(url.path) cannot be read", "put the file there or name it with \(option)")
        }
        var format = PropertyListSerialization.PropertyListFormat.xml
        guard
            let list = try? PropertyListSerialization.propertyList(from: data, format: &format) as? [String: Any]
        else { throw BundleError("\(url.path) is no property list", "check that it holds one dictionary") }
        return (list, format)
    }

    private static func text(_ key: String, in list: [String: Any], of url: URL) throws -> String {
        guard let text = list[key] as? String, !text.isEmpty else {
            throw BundleError("\(key) is missing in \(url.path)", "add it as a text")
        }
        return text
    }

    private static func set(_ key: String, to value: String, in list: inout [String: Any], of url: URL) throws {
        guard list[key] == nil || list[key] is String else {
            throw BundleError(
                "\(key) in \(url.path) is no text", "--info-value writes texts only; change it in the file")
        }
        list[key] = value
    }
}
