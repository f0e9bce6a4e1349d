// What stands beside the bytes of a partial file.

/// Which version the bytes of a partial file belong to; written before the first of them, and no commit.
package struct PartialNote: Hashable, Sendable {
    /// The attribute of the file that holds `text`.
    package static let attribute = "user.backgroundassets.version"

    /// Nothing is known here of stable storage: `syncedOffset` is 0.
    package var point: ResumePoint
    /// A row of this version that says that so many bytes were synced, or fewer, may be older than these bytes: the file has
    /// started over since.
    package var staleOffset: Int64

    package init(_ point: ResumePoint, staleOffset: Int64 = 0) {
        self.point = point
        self.point.syncedOffset = 0
        self.staleOffset = staleOffset
    }

    /// Whether a row may tell of bytes that were there before these.
    package func isNewer(than row: ResumePoint) -> Bool { row.syncedOffset <= staleOffset }
}

// MARK: As text

extension PartialNote {
    private enum Field: String {
        case etag, modified, total, epoch, digest, again, stale
    }

    /// One line for each field that there is: its name, a space and its value. nil when a value has lines itself: nobody who
    /// sends a tag may write fields.
    package var text: String? {
        let values: [(Field, String?)] = [
            (.etag, point.etag), (.modified, point.lastModified), (.total, String(point.total)),
            (.epoch, point.storageEpoch), (.digest, point.digest?.text), (.again, point.isSecondTry ? "yes" : nil),
            (.stale, staleOffset > 0 ? String(staleOffset) : nil),
        ]
        guard !values.contains(where: { $0.1?.utf8.contains(UInt8(ascii: "\n")) == true }) else { return nil }
        return values.compactMap { field, value in value.map { "\(field.rawValue) \($0)" } }.joined(separator: "\n")
    }

    /// Reads `text`; nil for anything else.
    package init?(_ text: String) {
        var values: [Field: String] = [:]
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let field = Field(rawValue: String(parts[0])), values[field] == nil else {
                return nil
            }
            values[field] = String(parts[1])
        }
        guard let total = Int64(values[.total] ?? ""), total >= 0, let epoch = values[.epoch],
            let stale = Int64(values[.stale] ?? "0"), stale >= 0
        else { return nil }
        let digest = values[.digest].flatMap { ContentDigest($0) }
        guard (digest == nil) == (values[.digest] == nil) else { return nil }
        self.init(
            ResumePoint(
                etag: values[.etag], lastModified: values[.modified], total: total, syncedOffset: 0,
                storageEpoch: epoch, digest: digest, isSecondTry: values[.again] != nil),
            staleOffset: stale)
    }
}
