// The manifests of simulated apps.
package import AssetsModel
internal import AssetsOS

/// A manifest of simulated apps: one line for each download, "identifier url size essential|later priority digest|-".
package enum ScriptedManifest {
    /// One line.
    package struct Entry: Hashable, Sendable {
        package var identifier: String
        package var url: String
        package var size: Int
        package var isEssential: Bool
        package var priority: Int
        package var digest: ContentDigest?

        package init(
            _ identifier: String, _ url: String, size: Int, isEssential: Bool, priority: Int = 0,
            digest: ContentDigest? = nil
        ) {
            self.identifier = identifier
            self.url = url
            self.size = size
            self.isEssential = isEssential
            self.priority = priority
            self.digest = digest
        }
    }

    package static func bytes(_ entries: [Entry]) -> [UInt8] {
        let lines = entries.map {
            "\($0.identifier) \($0.url) \($0.size) \($0.isEssential ? "essential" : "later") \($0.priority) "
                + "\($0.digest?.text ?? "-")\n"
        }
        return Array(lines.joined().utf8)
    }

    static func parse(_ bytes: [UInt8], group: String, _ random: SeededRandom) -> [DownloadRequest] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 6, let size = Int64(words[2]), let priority = Int(words[4]) else { return nil }
            return DownloadRequest(
                identifier: words[0], uniqueIdentifier: random.uuid(), url: words[1], group: group,
                isEssential: words[3] == "essential", size: size, priority: priority,
                sha256: ContentDigest(words[5])?.bytes)
        }
    }
}
