// Files in the container that the sample app shares, and what it fetches by itself.
import BackgroundAssets
import FixturePlan
import Foundation
import FoundationNetworking

extension Driver {
    func performFiles(_ verb: String, _ argument: String, _ reply: inout FixtureRecord) throws -> Bool {
        let words = argument.split(separator: " ", maxSplits: 1).map(String.init)
        switch verb {
        case "container": reply.path = container.path
        case "ensure":
            let item = try item(argument)
            let asset = container.appendingPathComponent(FixtureName.assets).appendingPathComponent(item.identifier)
            reply.value = FileManager.default.fileExists(atPath: asset.path) ? "present" : "missing"
            if reply.value == "missing" { perform("obtain " + argument) }
        case "read":
            reply.value = String(
                decoding: try Data(contentsOf: container.appendingPathComponent(argument)), as: UTF8.self)
        case "write": try Data(words[1].utf8).write(to: container.appendingPathComponent(words[0]), options: .atomic)
        case "save": try save(container.appendingPathComponent(words[0]), count: Int(words[1]) ?? 0)
        case "watch": reply.value = try watch(container.appendingPathComponent(argument))
        case "fetch":
            guard let url = URL(string: argument) else { throw CocoaError(.formatting) }
            reply = awaiting(reply) { $0.value = String(decoding: try await Self.fetch(url), as: UTF8.self) }
        default: return false
        }
        return true
    }

    private nonisolated(nonsending) static func fetch(_ url: URL) async throws -> Data {
        try await URLSession.shared.data(from: url).0
    }

    /// Bytes of a file that is saved: several pages, so that half of one could be seen.
    private static let savedSize = 100_000

    /// Saves two contents in turn, atomically, and a last one.
    private func save(_ file: URL, count: Int) throws {
        for number in 0..<count {
            let letter = UInt8(ascii: number == count - 1 ? "Z" : number % 2 == 0 ? "a" : "b")
            try Data(repeating: letter, count: Self.savedSize).write(to: file, options: .atomic)
        }
    }

    /// Reads until it sees the last content; counts the whole contents it saw.
    private func watch(_ file: URL) throws -> String {
        var seen: [UInt8] = []
        while seen.last != UInt8(ascii: "Z") {
            guard let data = FileManager.default.contents(atPath: file.path) else { continue }
            guard let first = data.first, data.count == Self.savedSize, data.allSatisfy({ $0 == first }) else {
                return "half a file after \(seen.count) changes"
            }
            if seen.last != first { seen.append(first) }
        }
        return "whole \(seen.count)"
    }
}
