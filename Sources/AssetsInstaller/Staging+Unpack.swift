// Staging from an archive.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

extension Staging {
    /// What was met on the way through the archive.
    private struct Course {
        var top: String?
        var links: [(entry: EntryPath, target: [UInt8])] = []
        /// Folders that the archive named itself, as against those made for files in them.
        var folders: Set<String> = []
        /// Bytes of the names in the former two, which stay in memory.
        var nameBytes = 0
        var entryCount = 0
    }

    /// Bytes of names that one archive may have us remember.
    private static let nameBytesMax = 32 << 20

    /// Unpacks the archive and returns its one top folder.
    mutating func unpack(_ file: borrowing Descriptor, archiveSize: Int64) throws(AssetsError) -> String {
        let reader = try faults { () throws(ArchiveReader.Fault) in
            try ArchiveReader(file, unpackedMax: limits.unpackedMax(archiveSize: archiveSize))
        }
        var course = Course()
        let writer = FileWriter()
        while let entry = try faults({ () throws(ArchiveReader.Fault) in try reader.next(file) }) {
            try checkCancelled()
            course.entryCount += 1
            guard course.entryCount <= limits.entriesMax else {
                throw hostile("it holds more than \(limits.entriesMax) files and folders")
            }
            // "./" alone: the folder in which tar was called.
            if entry.kind == .folder, entry.name == [0x2E] || entry.name == [0x2E, 0x2F] { continue }
            let path = try path(entry.name)
            try checkTop(path, kind: entry.kind, course: &course)
            try make(path, entry.kind, reader: reader, writer: writer, course: &course, archiveSize: archiveSize)
            report(min(reader.consumed, archiveSize), of: archiveSize)
        }
        guard let top = course.top else {
            throw hostile("it holds no app bundle")
        }
        try makeLinks(course.links, bundle: top)
        report(archiveSize, of: archiveSize)
        return top
    }

    private func checkTop(
        _ path: EntryPath, kind: ArchiveReader.Kind, course: inout Course
    ) throws(AssetsError) {
        if let top = course.top {
            guard path.top == top else {
                throw hostile("it holds \(printable(path.top.utf8)) beside \(printable(top.utf8))")
            }
        } else {
            guard isBundleFolder(path.top) else {
                throw hostile("its top folder \(printable(path.top.utf8)) does not end in .app")
            }
            course.top = path.top
        }
        guard path.components.count > 1 || kind == .folder else {
            throw hostile("\(printable(path.top.utf8)) is not a folder")
        }
    }

    private mutating func make(
        _ path: EntryPath, _ kind: ArchiveReader.Kind, reader: ArchiveReader, writer: FileWriter,
        course: inout Course, archiveSize: Int64
    ) throws(AssetsError) {
        switch kind {
        case .folder:
            try remember(path.text.utf8.count, in: &course)
            guard course.folders.insert(path.text).inserted else {
                throw hostile("\(printable(path.text.utf8)) is there twice")
            }
            try folder.makeFolder(path)
        case .file(let isProgram):
            let output = try folder.makeFile(path, isProgram: isProgram)
            try unpackContents(path, to: output, reader: reader, writer: writer, archiveSize: archiveSize)
        case .link(let target):
            try remember(path.text.utf8.count + target.count, in: &course)
            course.links.append((path, target))
        case .hardLink(let target):
            try copyEarlier(target, to: path)
        case .other:
            throw hostile("\(printable(path.text.utf8)) is neither a file, a folder nor a link")
        }
    }

    private func remember(_ count: Int, in course: inout Course) throws(AssetsError) {
        course.nameBytes += count
        guard course.nameBytes <= Self.nameBytesMax else { throw hostile("its names are too many and too long") }
    }

    private mutating func unpackContents(
        _ path: EntryPath, to output: borrowing Descriptor, reader: ArchiveReader, writer: FileWriter,
        archiveSize: Int64
    ) throws(AssetsError) {
        writer.discardBuffered()
        let text = printable(path.text.utf8)
        var end: Int64 = 0
        let result = try reader.readContents { (bytes, offset) throws(AssetsError) in
            try checkCancelled()
            try addBytes(offset + Int64(bytes.count) - end)
            end = offset + Int64(bytes.count)
            try writing(text) { () throws(SystemCallError) in try writer.write(bytes, at: offset, to: output) }
            report(min(reader.consumed, archiveSize), of: archiveSize)
        }
        let length = try faults { () throws(ArchiveReader.Fault) in try result.get() }
        try addBytes(length - end)
        try writing(text) { () throws(SystemCallError) in try writer.finish(output, length: length) }
    }

    /// A hard link becomes a file of its own: nothing in a bundle shares bytes with a second name.
    private mutating func copyEarlier(_ target: [UInt8], to path: EntryPath) throws(AssetsError) {
        let earlier = try self.path(target)
        guard let input = folder.openFile(earlier) else {
            throw hostile(
                "the hard link \(printable(path.text.utf8)) leads to \(printable(target)), which is no file before it")
        }
        var status = stat()
        let fd = input.rawValue
        _ = try reading(earlier.text) { () throws(SystemCallError) in try check("fstat") { fstat(fd, &status) } }
        let output = try folder.makeFile(path, isProgram: status.st_mode & S_IXUSR != 0)
        try copyContents(input, to: output, entry: path) { _, _ in }
    }

    private func faults<R: ~Copyable>(_ body: () throws(ArchiveReader.Fault) -> R) throws(AssetsError) -> R {
        do throws(ArchiveReader.Fault) { return try body() } catch {
            switch error {
            case .cutShort:
                throw AssetsError(
                    .archiveInvalid, "\(source): the archive ended early",
                    remedy: "Fetch or copy it again, or make it anew")
            case .unknownFormat:
                throw AssetsError(
                    .archiveInvalid, "\(source): this is no archive that can be read",
                    remedy: "Use .tar.zst, .tar.xz, .tar.gz, .tar.bz2, .tar or .zip")
            case .expandsTooFar:
                throw hostile("it unpacks to more bytes than an app of its size can have")
            case .damaged(let words):
                throw AssetsError(
                    .archiveInvalid, "\(source): the archive is damaged: \(words)",
                    remedy: "Fetch or copy it again, or make it anew")
            }
        }
    }
}
