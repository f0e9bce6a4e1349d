// What /proc tells of another process.
import Foundation

/// The lines of /proc/<process>/status.
struct ProcessStatus {
    private let values: [String: String]

    init(_ process: Int32) { values = Self.pairs(Self.text(process, "status"), separator: ":", lines: "\n") }

    subscript(name: String) -> String? { values[name] }

    /// -20 to 19.
    static func nice(_ process: Int32) -> Int? {
        let text = text(process, "stat")
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        return fields.count > 16 ? Int(fields[16]) : nil
    }

    static func descriptors(_ process: Int32) -> [Int] {
        Files.names(in: "/proc/\(process)/fd").compactMap { Int($0) }.sorted()
    }

    /// What a descriptor is, as the kernel writes it.
    static func link(_ descriptor: Int, _ process: Int32) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/fd/\(descriptor)")
    }

    static func environment(_ process: Int32) -> [String: String] {
        pairs(text(process, "environ"), separator: "=", lines: "\0")
    }

    /// The soft limit of that name.
    static func limit(_ name: String, _ process: Int32) -> String? {
        let line = text(process, "limits").split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.dropFirst(name.count).split(separator: " ").first.map(String.init)
    }

    private static func text(_ process: Int32, _ file: String) -> String {
        Files.read("/proc/\(process)/\(file)").map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    private static func pairs(_ text: String, separator: Character, lines: Character) -> [String: String] {
        var result: [String: String] = [:]
        for line in text.split(separator: lines) {
            guard let place = line.firstIndex(of: separator) else { continue }
            result[String(line[..<place])] = line[line.index(after: place)...].trimmingCharacters(in: .whitespaces)
        }
        return result
    }
}
