// What has to be known of a partial file to go on with it.

/// The version of a resource that a partial file belongs to, and how much of it is safe.
///
/// The row of a download has it as of the last sync: that is what a power cut leaves. Beside the bytes stands a
/// `PartialNote`: that is what a kill leaves, however early.
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
