// The preferences that app and extension share, and what their bundle says of them. Nothing here has heard of ours.
package import Foundation

/// The preferences of the app group. Neither side ever calls `synchronize()`.
package func sharedDefaults(_ group: String) -> UserDefaults { UserDefaults(suiteName: group) ?? .standard }

/// Sets so many numbers, each under a name of its own.
package func addNumbers(_ count: Int, _ prefix: String, to defaults: UserDefaults) {
    for number in 0..<count { defaults.set(number, forKey: "\(prefix) \(number)") }
}

/// How many numbers of a prefix are there with the value they were given.
package func countNumbers(_ prefix: String, in defaults: UserDefaults) -> Int {
    defaults.dictionaryRepresentation().filter { key, value in
        key.hasPrefix(prefix + " ") && (value as? Int).map { key == "\(prefix) \($0)" } == true
    }.count
}

extension FixtureRecord {
    /// Notes what the process knows of its bundle.
    package mutating func noteBundle() {
        bundle = Bundle.main.bundleIdentifier
        executable = Bundle.main.object(forInfoDictionaryKey: "CFBundleExecutable") as? String
    }
}

/// Replaces a file in the manner of a library that was written for Foundation alone.
package func replaceInLibrary(_ original: URL, by new: URL) throws {
    _ = try FileManager.default.replaceItemAt(original, withItemAt: new)
}
