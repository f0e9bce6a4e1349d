// What a server has for downloads that a power cut interrupts.
package import AssetsOS
internal import Glibc

/// Files of many sizes, known to the byte.
package struct ServedFiles: Sendable {
    /// About pages, the pieces that a transfer writes, and the bytes between two syncs of a partial file.
    private static let sizes = [
        1, 4_096, 10_000, 100_000, 512 << 10, (512 << 10) + 1, 1_048_583, 3_000_000, 20 << 20,
    ]
    /// The last one costs as much as all others together.
    private static let largestOneIn = 12

    package let baseURL: String
    private let contents: [[UInt8]]

    /// Writes them into the folder that is served at `baseURL`.
    package init(in folder: String, baseURL: String) throws(SystemCallError) {
        self.baseURL = baseURL
        var chance = SeededChance(seed: 1)
        contents = Self.sizes.map { size in
            var bytes = [UInt8](repeating: 0, count: size + 7)
            bytes.withUnsafeMutableBytes { bytes in
                for offset in stride(from: 0, to: size, by: 8) {
                    bytes.storeBytes(of: chance.next(), toByteOffset: offset, as: UInt64.self)
                }
            }
            return Array(bytes.prefix(size))
        }
        for (number, content) in contents.enumerated() {
            try PlainFile.write(content, to: "\(folder)/\(name(of: number))")
        }
    }

    package func name(of file: Int) -> String { "cut-\(file).bin" }
    package func url(of file: Int) -> String { "\(baseURL)/\(name(of: file))" }
    package func size(of file: Int) -> Int { contents[file].count }

    package func choose(_ chance: inout SeededChance) -> Int {
        let largest = contents.count - 1
        return chance.oneIn(Self.largestOneIn) ? largest : Int.random(in: 0..<largest, using: &chance)
    }

    /// nil where there is no such file; false for every other content than the server's.
    package func isRight(_ path: String, _ file: Int) throws(SystemCallError) -> Bool? {
        guard let found = try PlainFile.read(path) else { return nil }
        return found == contents[file]
    }

    /// How a file differs from the server's, for people.
    package func difference(_ path: String, _ file: Int) throws(SystemCallError) -> String {
        guard let found = try PlainFile.read(path) else { return "missing" }
        let right = contents[file]
        let same = zip(found, right).prefix { $0 == $1 }.count
        if same == found.count && same == right.count { return "right" }
        let zeros = found[same...].prefix { $0 == 0 }.count
        return "\(found.count) of \(right.count) bytes, the first \(same) right, then \(zeros) zeros"
    }
}
