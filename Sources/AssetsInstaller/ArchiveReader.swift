// libarchive: entries of a tar or zip file, one after the other. Only what bundles come in is switched on.
internal import AssetsOS
internal import CArchive
internal import Glibc

/// Reads an archive from its start to its very end.
///
/// A tar file is read in two steps, decompression and tar, each by a libarchive reader of its own: so the compressed
/// stream can be read to its end and its checksum be compared after the last entry, and what comes out is counted
/// before it is looked at.
final class ArchiveReader {
    /// Why reading ended.
    enum Fault: Error, Equatable {
        /// The file stops before its content does.
        case cutShort
        /// Not one of our formats.
        case unknownFormat
        /// More comes out than the limit allows.
        case expandsTooFar
        /// libarchive's words.
        case damaged(String)
    }

    enum Kind: Equatable {
        case file(isProgram: Bool)
        case folder
        case link(target: [UInt8])
        /// Another name of an entry before.
        case hardLink(to: [UInt8])
        case other
    }

    struct Entry {
        var name: [UInt8]
        var kind: Kind
    }

    /// Bytes of one read from the archive file.
    private static let blockSize = 1 << 20

    /// What the tar reader's callback works on.
    private final class Decompressor {
        let archive: OpaquePointer
        var gzip: GzipCheck?
        var unpacked: Int64 = 0
        let unpackedMax: Int64
        var fault: Fault?

        init(archive: OpaquePointer, unpackedMax: Int64) {
            self.archive = archive
            self.unpackedMax = unpackedMax
        }

        deinit { archive_read_free(archive) }

        /// The next bytes; nil at the end or at a fault.
        func next() -> UnsafeRawBufferPointer? {
            var bytes: UnsafeRawPointer?
            var count = 0
            var offset: Int64 = 0
            while fault == nil {
                let code = archive_read_data_block(archive, &bytes, &count, &offset)
                if code == ARCHIVE_EOF { return nil }
                guard code == ARCHIVE_OK else {
                    fault = ArchiveReader.fault(of: archive)
                    return nil
                }
                unpacked += Int64(count)
                guard unpacked <= unpackedMax else {
                    fault = .expandsTooFar
                    return nil
                }
                if count > 0 {
                    let block = UnsafeRawBufferPointer(start: bytes, count: count)
                    gzip?.add(block)
                    return block
                }
            }
            return nil
        }
    }

    private let archive: OpaquePointer
    private let decompressor: Decompressor?
    private let locale: locale_t?
    private var entry: OpaquePointer?
    private var unpackedOfZip: Int64 = 0
    private let unpackedMax: Int64

    /// `file` stays open and where it is for the reader's life.
    init(_ file: borrowing Descriptor, unpackedMax: Int64) throws(Fault) {
        let start = Self.firstBytes(file)
        let isZip = start.starts(with: [0x50, 0x4B, 0x03, 0x04]) || start.starts(with: [0x50, 0x4B, 0x05, 0x06])
        let decompressor = isZip ? nil : try Self.decompressor(file, start: start, unpackedMax: unpackedMax)
        guard let archive = archive_read_new() else { throw .damaged("out of memory") }
        self.unpackedMax = unpackedMax
        self.decompressor = decompressor
        self.archive = archive
        // Names that are UTF-8 in the archive stay so, whatever the service's environment says.
        locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)
        // What throws from here on leaves a whole value behind, whose deinit frees all that.
        if let decompressor { try open(tar: decompressor) } else { try open(zip: file) }
    }

    /// The reader that uses the directory at the file's end: a file without its end is not taken.
    private func open(zip file: borrowing Descriptor) throws(Fault) {
        archive_read_support_format_zip_seekable(archive)
        guard archive_read_open_fd(archive, file.rawValue, Self.blockSize) == ARCHIVE_OK else { throw .cutShort }
    }

    private func open(tar decompressor: Decompressor) throws(Fault) {
        archive_read_support_format_tar(archive)
        archive_read_set_read_callback(archive) { _, context, bytes in
            guard let context else { return -1 }
            let decompressor = Unmanaged<Decompressor>.fromOpaque(context).takeUnretainedValue()
            let block = decompressor.next()
            bytes?.pointee = block?.baseAddress
            return decompressor.fault == nil ? block?.count ?? 0 : -1
        }
        archive_read_set_callback_data(archive, Unmanaged.passUnretained(decompressor).toOpaque())
        guard archive_read_open1(archive) == ARCHIVE_OK else { throw decompressor.fault ?? .unknownFormat }
    }

    private static func decompressor(
        _ file: borrowing Descriptor, start: [UInt8], unpackedMax: Int64
    ) throws(Fault) -> Decompressor {
        guard !start.isEmpty else { throw .cutShort }
        let decompressor = try openDecompressor(file, unpackedMax: unpackedMax)
        if start.starts(with: [0x1F, 0x8B]) { decompressor.gzip = GzipCheck() }
        return decompressor
    }

    deinit {
        archive_read_free(archive)
        if let locale { freelocale(locale) }
    }

    /// Bytes of the archive file that were read.
    var consumed: Int64 { archive_filter_bytes(decompressor?.archive ?? archive, -1) }

    /// The next entry; nil when the archive ended as it should. `file` is the one of `init`.
    func next(_ file: borrowing Descriptor) throws(Fault) -> Entry? {
        let before = locale.map { uselocale($0) }
        defer { if let before { uselocale(before) } }
        let code = archive_read_next_header(archive, &entry)
        if code == ARCHIVE_EOF {
            try checkEnd(file)
            return nil
        }
        guard code == ARCHIVE_OK || code == ARCHIVE_WARN, let entry else { throw currentFault }
        guard let name = archive_entry_pathname(entry) else { return Entry(name: [0xFF], kind: .other) }
        return Entry(name: Self.bytes(name), kind: Self.kind(entry))
    }

    /// Hands out the current file's content piece by piece; returns its length, which may end in a hole.
    func readContents<E: Error>(
        _ body: (_ bytes: UnsafeRawBufferPointer, _ offset: Int64) throws(E) -> Void
    ) throws(E) -> Result<Int64, Fault> {
        var length: Int64 = 0
        while true {
            var bytes: UnsafeRawPointer?
            var count = 0
            var offset: Int64 = 0
            let code = archive_read_data_block(archive, &bytes, &count, &offset)
            if code == ARCHIVE_EOF { return .success(max(length, offset)) }
            // A warning here is a wrong checksum.
            guard code == ARCHIVE_OK else { return .failure(currentFault) }
            let (end, overflow) = offset.addingReportingOverflow(Int64(count))
            guard offset >= length, !overflow else { return .failure(.damaged("its pieces overlap")) }
            if decompressor == nil {
                unpackedOfZip += Int64(count)
                guard unpackedOfZip <= unpackedMax else { return .failure(.expandsTooFar) }
            }
            length = end
            if count > 0 { try body(UnsafeRawBufferPointer(start: bytes, count: count), offset) }
        }
    }

    // MARK: The end

    /// libarchive takes a tar file that stops between two entries for a whole one; tar's own end is a block of zeros.
    /// What follows it is read too, since the checksum of the compressed stream comes last.
    private func checkEnd(_ file: borrowing Descriptor) throws(Fault) {
        guard let decompressor else { return }
        if let fault = decompressor.fault { throw fault }
        let blockSize: Int64 = 512
        guard archive_filter_bytes(archive, 0) - archive_read_header_position(archive) >= blockSize else {
            throw .cutShort
        }
        while decompressor.next() != nil {}
        if let fault = decompressor.fault { throw fault }
        if let gzip = decompressor.gzip, !gzip.matches(endOf: file) {
            throw .damaged("its checksum differs, or something follows it")
        }
    }

    private var currentFault: Fault { decompressor?.fault ?? Self.fault(of: archive) }

    // MARK: libarchive

    private static func openDecompressor(
        _ file: borrowing Descriptor, unpackedMax: Int64
    ) throws(Fault) -> Decompressor {
        guard let archive = archive_read_new() else { throw .damaged("out of memory") }
        let decompressor = Decompressor(archive: archive, unpackedMax: unpackedMax)
        // No support_filter_all: some of its filters start other programs.
        archive_read_support_filter_zstd(archive)
        archive_read_support_filter_gzip(archive)
        archive_read_support_filter_xz(archive)
        archive_read_support_filter_bzip2(archive)
        archive_read_support_format_raw(archive)
        guard archive_read_open_fd(archive, file.rawValue, blockSize) == ARCHIVE_OK else { throw fault(of: archive) }
        var entry: OpaquePointer?
        guard archive_read_next_header(archive, &entry) == ARCHIVE_OK else { throw fault(of: archive) }
        return decompressor
    }

    private static func firstBytes(_ file: borrowing Descriptor) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4)
        let count = pread(file.rawValue, &bytes, bytes.count, 0)
        return Array(bytes[..<max(0, count)])
    }

    private static func bytes(_ text: UnsafePointer<CChar>) -> [UInt8] {
        UnsafeBufferPointer(start: text, count: strlen(text)).map { UInt8(bitPattern: $0) }
    }

    private static func kind(_ entry: OpaquePointer) -> Kind {
        if let target = archive_entry_hardlink(entry) { return .hardLink(to: bytes(target)) }
        switch mode_t(archive_entry_filetype(entry)) {
        case S_IFREG: return .file(isProgram: archive_entry_perm(entry) & S_IXUSR != 0)
        case S_IFDIR: return .folder
        case S_IFLNK: return .link(target: archive_entry_symlink(entry).map(bytes) ?? [])
        default: return .other
        }
    }

    /// libarchive has one code for all damage; that a file ends early is told by its words only, or by none where the
    /// last bytes of a gzip file are missing.
    private static func fault(of archive: OpaquePointer) -> Fault {
        let words = archive_error_string(archive).map { printable(bytes($0)) } ?? ""
        let lowered = words.lowercased()
        if words.isEmpty || lowered.contains("truncated") || lowered.contains("premature")
            || lowered.contains("unexpected end")
            || lowered.contains("end-of-file")
        {
            return .cutShort
        }
        return lowered.contains("unrecognized archive format") ? .unknownFormat : .damaged(words)
    }
}
