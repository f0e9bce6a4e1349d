// The environment of this process, read once and handed on as a value.
internal import Glibc

/// Environment variables as a dictionary.
package enum ProcessEnvironment {
    /// What this process was started with.
    package static var current: [String: String] {
        var values: [String: String] = [:]
        // clearenv leaves no list at all, though the imported type says otherwise.
        let list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = environ
        guard var entry = list else { return values }
        while let text = entry.pointee {
            let line = String(cString: text)
            if let equals = line.firstIndex(of: "=") {
                values[String(line[..<equals])] = String(line[line.index(after: equals)...])
            }
            entry += 1
        }
        return values
    }

    /// Variables that steer the sanitizer a build is instrumented with; every program that a program of ours starts gets
    /// them. None in other builds.
    #if SANITIZED
        package static let sanitizerOptions: Set<String> = ["ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"]
    #else
        package static let sanitizerOptions: Set<String> = []
    #endif

    /// A variable that is set and not empty.
    package static func value(_ name: String, in environment: [String: String]) -> String? {
        guard let value = environment[name], !value.isEmpty else { return nil }
        return value
    }
}
