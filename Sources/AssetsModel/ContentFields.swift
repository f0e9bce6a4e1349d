// Header fields that say in which form, and how much of it, the bytes of a response come.

/// The form of a response's body.
package enum ContentFields {
    /// Bytes of the body; 0 when they are not told or the end shows in another way, nil when the server contradicts
    /// itself.
    package static func length(_ head: TransportHead) -> Int64? {
        guard values(of: "Transfer-Encoding", head).isEmpty else { return 0 }
        let told = values(of: "Content-Length", head)
        guard let first = told.first else { return 0 }
        guard told.allSatisfy({ $0 == first }) else { return nil }
        return ASCIIText.number(first)
    }

    /// "text/html", in lower case and without parameters; nil when it is not told, or told twice.
    package static func mediaType(_ head: TransportHead) -> String? {
        guard let value = head.value(of: "Content-Type") else { return nil }
        let type = value.prefix { $0 != ";" && $0 != "," && $0 != " " }
        return type.isEmpty ? nil : type.lowercased()
    }

    /// How the bytes are packed, in lower case; nil for bytes as they are.
    package static func coding(_ head: TransportHead) -> String? {
        let codings = values(of: "Content-Encoding", head).flatMap { $0.split(separator: ",") }
            .map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
            .filter { !$0.isEmpty && $0 != "identity" }
        return codings.isEmpty ? nil : codings.joined(separator: ", ")
    }

    /// Whether the server says that it sends parts.
    package static func offersParts(_ head: TransportHead) -> Bool {
        values(of: "Accept-Ranges", head).flatMap { $0.split(separator: ",") }
            .contains { ASCIIText.isEqual($0.filter { $0 != " " }, "bytes") }
    }

    /// Whether a file of this name is packed that way in itself: some servers say of "x.tar.gz" what is true of its inside.
    package static func isNamed(_ path: String, as coding: String) -> Bool {
        let suffixes: [String: [String]] = [
            "gzip": ["gz", "tgz"], "x-gzip": ["gz", "tgz"], "compress": ["z"], "x-compress": ["z"], "br": ["br"],
            "zstd": ["zst", "tzst"], "x-bzip2": ["bz2", "tbz2"], "x-xz": ["xz", "txz"],
        ]
        return suffixes[coding]?.contains(WebAddress.suffix(of: path)) ?? false
    }

    private static func values(of name: String, _ head: TransportHead) -> [String] {
        head.headers.filter { ASCIIText.isEqual($0.name, name) }.map(\.value)
    }
}

extension WebAddress {
    /// What stands behind the last dot of a path's last part, in lower case; empty without a dot.
    package static func suffix(of path: String) -> String {
        let name = path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...]
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "" }
        return name[name.index(after: dot)...].lowercased()
    }
}
