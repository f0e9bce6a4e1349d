// Where HTTP/2 may be used.

/// The rule for a version of libcurl.
///
/// A transfer must be able to pause at a bounded price. libcurl before 8.14 either goes on taking up to 32 MiB of a paused
/// stream, or does not always go on after the pause. From then on a pause closes the stream's window; what is on its way
/// by then, at most 10 MiB, still goes into memory, so only downloads that are announced to be small share a connection.
/// They gain from it: nothing waits for a handshake. Background transfers never do, because their connections have
/// another priority.
package struct HTTP2Rule: Hashable, Sendable {
    private static let safeVersion: UInt32 = 0x08_0E_00

    package let isAllowed: Bool
    /// For people.
    package let reason: String

    /// - Parameters:
    ///   - number: As `LIBCURL_VERSION_NUM`: a byte each for major, minor and patch.
    ///   - isBuiltIn: Whether this libcurl knows HTTP/2 at all.
    package init(version: String, number: UInt32, isBuiltIn: Bool) {
        isAllowed = isBuiltIn && number >= Self.safeVersion
        if !isBuiltIn {
            reason = "HTTP/1.1 only: libcurl \(version) was built without HTTP/2"
        } else if isAllowed {
            reason = "HTTP/2 for small downloads: libcurl \(version) closes the window of a paused transfer"
        } else {
            reason = "HTTP/1.1 only: libcurl \(version) keeps in memory what comes for a paused HTTP/2 transfer"
        }
    }
}
