// Puts the bundle of an app together below the device's folder: from a folder or from an archive.
package import AssetsModel
internal import AssetsOS
internal import Glibc

/// A bundle that lies complete, checked and synced in its staging folder.
package struct StagedBundle: Hashable, Sendable {
    package var description: AppDescription
    /// Bytes of all files.
    package var bytes: Int64

    package init(description: AppDescription, bytes: Int64) {
        self.description = description
        self.bytes = bytes
    }
}

/// Unpacks or copies bundles into staging folders.
///
/// All calls block, for minutes with large bundles: call them on a disk loop.
package final class BundleStager: Sendable {
    private let root: Descriptor
    private let limits: StagingLimits

    /// `root` is the device's folder; all staging folders lie below it.
    package init(root: String, limits: StagingLimits = StagingLimits()) throws(AssetsError) {
        self.root = try writing(root) { () throws(SystemCallError) in try Descriptor.directory(root) }
        self.limits = limits
    }

    /// Stages `source`, the absolute path of a folder `X.app` or of an archive of one (.tar, .tar.zst, .tar.gz,
    /// .tar.xz, .tar.bz2, .zip), as `X.app` in the new folder `into` below the device's folder.
    ///
    /// When it throws, nothing of `into` is left. `progress` gets bytes of the source, read and in all.
    package func stage(
        source: String, into: String, allowsLoopbackHTTP: Bool, isCancelled: @escaping @Sendable () -> Bool,
        progress: @escaping @Sendable (_ bytesDone: Int64, _ bytesTotal: Int64) -> Void
    ) throws(AssetsError) -> StagedBundle {
        let opened = try open(source)
        let folder = try StagingFolder(root: root, path: into, source: printable(source.utf8), limits: limits)
        do throws(AssetsError) {
            var staging = Staging(
                folder: folder, source: printable(source.utf8), limits: limits, isCancelled: isCancelled,
                progress: progress)
            let top: String
            if opened.isDirectory {
                top = try staging.copy(opened.descriptor, name: bundleFolderName(source))
            } else {
                top = try staging.unpack(opened.descriptor, archiveSize: opened.size)
            }
            let description = try BundleValidator(allowsLoopbackHTTP: allowsLoopbackHTTP).validate(
                folder.openBundle(top), folder: top)
            try staging.checkCancelled()
            try folder.sync()
            return StagedBundle(description: description, bytes: staging.bytes)
        } catch {
            folder.remove()
            throw error
        }
    }

    private struct Source: ~Copyable {
        let descriptor: Descriptor
        let isDirectory: Bool
        let size: Int64
    }

    private func open(_ source: String) throws(AssetsError) -> Source {
        guard source.hasPrefix("/"), !source.utf8.contains(0) else {
            throw AssetsError(
                .usage, "\(printable(source.utf8)) is not an absolute path", remedy: "Give the whole path")
        }
        let shown = printable(source.utf8)
        var status = stat()
        // O_NONBLOCK: opening a named pipe must not wait for its writer.
        let fd = try reading(shown) { () throws(SystemCallError) in
            try check("open") { Glibc.open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        }
        let descriptor = Descriptor(owning: fd)
        _ = try reading(shown) { () throws(SystemCallError) in try check("fstat") { fstat(fd, &status) } }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFDIR || kind == S_IFREG else {
            throw AssetsError(
                .archiveInvalid, "\(shown) is neither a folder nor a file",
                remedy: "Give an app bundle or an archive of one")
        }
        return Source(descriptor: descriptor, isDirectory: kind == S_IFDIR, size: Int64(status.st_size))
    }

    /// The last component of the path as it was given: links to a bundle are followed, their own name counts.
    private func bundleFolderName(_ source: String) throws(AssetsError) -> String {
        let name = source.utf8.split(separator: UInt8(ascii: "/")).last.flatMap { String($0) } ?? ""
        guard isBundleFolder(name) else {
            throw AssetsError(
                .archiveInvalid, "\(printable(source.utf8)) is a folder whose name does not end in .app",
                remedy: "Give the app bundle itself")
        }
        return name
    }
}

/// Whether `name` is that of a folder `X.app`.
func isBundleFolder(_ name: String) -> Bool { name.hasSuffix(".app") && name.utf8.count > 4 && !name.hasPrefix(".") }

/// One run of staging: what both kinds of source share.
struct Staging {
    /// Bytes between two reports of progress.
    private static let progressStep: Int64 = 1 << 20

    let folder: StagingFolder
    /// The source's path, printable.
    let source: String
    let limits: StagingLimits
    let isCancelled: @Sendable () -> Bool
    let progress: @Sendable (Int64, Int64) -> Void
    /// Bytes of all files so far, holes included.
    private(set) var bytes: Int64 = 0
    private var reported: Int64 = 0

    init(
        folder: StagingFolder, source: String, limits: StagingLimits, isCancelled: @escaping @Sendable () -> Bool,
        progress: @escaping @Sendable (Int64, Int64) -> Void
    ) {
        self.folder = folder
        self.source = source
        self.limits = limits
        self.isCancelled = isCancelled
        self.progress = progress
    }

    func checkCancelled() throws(AssetsError) {
        if isCancelled() { throw .stagingCancelled }
    }

    /// Counts a file's bytes, before they are written.
    mutating func addBytes(_ count: Int64) throws(AssetsError) {
        bytes += count
        guard bytes <= limits.bytesMax else {
            throw .hostile(source, "it holds more than \(limits.bytesMax) bytes")
        }
    }

    mutating func report(_ done: Int64, of total: Int64) {
        guard done - reported >= Self.progressStep || (done == total && done != reported) else { return }
        reported = done
        progress(done, total)
    }

    func hostile(_ reason: String) -> AssetsError { .hostile(source, reason) }

    /// Checks a name of the source.
    func path(_ name: [UInt8]) throws(AssetsError) -> EntryPath {
        do throws(EntryPath.Fault) { return try EntryPath(bytes: name, limits: limits) } catch {
            throw hostile("the name \"\(printable(name))\" \(error.explanation)")
        }
    }

    /// Makes the links, now that nothing is written any more, and has the kernel follow each of them: only what stays
    /// inside the bundle at every step is accepted.
    func makeLinks(_ links: [(entry: EntryPath, target: [UInt8])], bundle: String) throws(AssetsError) {
        for (entry, bytes) in links {
            guard let target = String(validating: bytes, as: UTF8.self), !target.isEmpty, !bytes.contains(0),
                bytes.count <= limits.pathLengthMax
            else { throw hostile("the link \(printable(entry.text.utf8)) has no valid target") }
            guard !target.hasPrefix("/") else {
                throw hostile("the link \(printable(entry.text.utf8)) leads to an absolute path")
            }
            try folder.makeLink(entry, target: target)
        }
        guard !links.isEmpty else { return }
        let directory = try folder.openBundle(bundle)
        for (entry, _) in links {
            let inside = entry.components.dropFirst().joined(separator: "/")
            let pathOnly: Int32 = 0o10000000
            do throws(SystemCallError) { _ = try directory.open(inside: inside, flags: pathOnly) } catch {
                let why = error.number == EXDEV ? "leads out of the bundle" : "leads nowhere"
                throw hostile("the link \(printable(entry.text.utf8)) \(why)")
            }
        }
    }
}
