// What has to be known of a partial file to go on with it.

/// The version of a resource that a partial file belongs to, and how much of it is safe.
///
/// It is kept twice. The row has it as of the last sync: that is what a power cut leaves. The file itself has it as `text`,
/// written before the first byte of an attempt: that is what a kill leaves, however early.
package struct ResumePoint: Hashable, Sendable {
    /// A strong entity tag, with its quotes.
    package var etag: String?
    /// Last-Modified, as the server sent it.
    package var lastModified: String?
    /// Bytes of the whole; 0 when the server did not say.
    package var total: Int64
    /// Bytes that were on stable storage when this was noted.
    package var syncedOffset: Int64
    /// Where bytes beyond `syncedOffset` can be trusted: boot and mount.
    package var storageEpoch: String
    /// What the server says that the whole comes to.
    package var digest: ContentDigest?
    /// The bytes before these did not come to their digest: if these do not either, there is no third time.
    package var isSecondTry: Bool

    package init(
        etag: String?, lastModified: String?, total: Int64, syncedOffset: Int64, storageEpoch: String,
        digest: ContentDigest? = nil, isSecondTry: Bool = false
    ) {
        self.etag = etag
        self.lastModified = lastModified
        self.total = total
        self.syncedOffset = syncedOffset
        self.storageEpoch = storageEpoch
        self.digest = digest
        self.isSecondTry = isSecondTry
    }
}

// MARK: Beside the bytes

extension ResumePoint {
    /// The attribute of a partial file that holds `text`.
    package static let attribute = "user.backgroundassets.version"

    private enum Field: String, CaseIterable {
        case etag, modified, total, epoch, digest, again
    }

    /// One line for each field that there is: its name, a space and its value. nil when a value has lines itself: nobody who
    /// sends a tag may write fields. `syncedOffset` is not among them, nothing is known of stable storage before the row.
    package var text: String? {
        let values: [(Field, String?)] = [
            (.etag, etag), (.modified, lastModified), (.total, String(total)), (.epoch, storageEpoch),
            (.digest, digest?.text), (.again, isSecondTry ? "yes" : nil),
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
        guard let total = values[.total].flatMap({ Int64($0) }), total >= 0, let epoch = values[.epoch] else {
            return nil
        }
        let digest = values[.digest].map { ContentDigest($0) }
        if case .some(nil) = digest { return nil }
        self.init(
            etag: values[.etag], lastModified: values[.modified], total: total, syncedOffset: 0, storageEpoch: epoch,
            digest: digest ?? nil, isSecondTry: values[.again] != nil)
    }
}
