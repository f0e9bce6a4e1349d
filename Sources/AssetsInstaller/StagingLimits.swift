// How much an app bundle may be; beyond it an archive is a bomb or a mistake.

/// Limits on what is staged.
package struct StagingLimits: Hashable, Sendable {
    /// Files, folders and links. Large apps have some ten thousand.
    package var entriesMax = 100_000
    /// Bytes of one path; the kernel takes 4096, of which the device's folder needs some.
    package var pathLengthMax = 1024
    /// Folders inside each other. Each open folder of a copy costs a descriptor.
    package var depthMax = 64
    /// Bytes after unpacking: no app of today is larger, and it ends an archive that never ends.
    package var bytesMax: Int64 = 64 << 30
    /// Bytes that one byte of the archive may become. Real assets stay below 100.
    package var expansionMax: Int64 = 1000
    /// Bytes that are admitted at any expansion, so that small archives of empty files pass.
    package var expansionFloor: Int64 = 64 << 20

    package init() {}

    /// Bytes that may come out of an archive of `size` bytes.
    func unpackedMax(archiveSize: Int64) -> Int64 {
        let (product, overflow) = archiveSize.multipliedReportingOverflow(by: expansionMax)
        guard !overflow, product < bytesMax else { return bytesMax }
        return min(bytesMax, product + expansionFloor)
    }
}
