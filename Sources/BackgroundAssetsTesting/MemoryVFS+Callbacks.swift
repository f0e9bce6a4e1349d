// What SQLite calls: the methods of the memory VFS and of its files, as C functions.
internal import AssetsOS
internal import CSQLite

/// An open file, behind the pointer that SQLite hands around. It keeps its VFS alive.
private final class OpenFile {
    let vfs: MemoryVFS
    let file: Int
    let handle: Int
    let life: Int
    let deletesOnClose: String?
    /// The first sync also makes names durable: a journal or log that this handle may have made, as unix VFS asks.
    var syncsNames: Bool

    init(vfs: MemoryVFS, file: Int, handle: Int, life: Int, deletesOnClose: String?, syncsNames: Bool) {
        self.vfs = vfs
        self.file = file
        self.handle = handle
        self.life = life
        self.deletesOnClose = deletesOnClose
        self.syncsNames = syncsNames
    }

    /// Works on the file's content; the error when it is of an earlier life, or when a fault hits a call that writes.
    func use(writes: Bool, error: Int32, _ body: (inout MemoryDisk.File) -> Int32) -> Int32 {
        vfs.disk.withLock { disk in
            guard life == disk.life, !(writes && disk.fails()), disk.files[file] != nil else { return error }
            // In place: taking a copy out would double it at each write.
            return body(&disk.files[file, default: MemoryDisk.File()])
        }
    }
}

/// What SQLite allocates for each open file: its own head, then our pointer.
private struct FileRecord {
    var base: sqlite3_file
    var open: UnsafeMutableRawPointer?
}

private func openFile(_ raw: UnsafeMutablePointer<sqlite3_file>?) -> OpenFile {
    guard let raw,
        let open = UnsafeMutableRawPointer(raw).assumingMemoryBound(to: FileRecord.self).pointee.open
    else { preconditionFailure("SQLite used a file that is not open") }
    return Unmanaged<OpenFile>.fromOpaque(open).takeUnretainedValue()
}

private func owner(_ raw: UnsafeMutablePointer<sqlite3_vfs>?) -> MemoryVFS {
    guard let data = raw?.pointee.pAppData else { preconditionFailure("SQLite used a VFS that is gone") }
    return Unmanaged<MemoryVFS>.fromOpaque(data).takeUnretainedValue()
}

/// The structure for `sqlite3_vfs_register`.
func makeMemoryVFS(name: UnsafePointer<CChar>, owner: UnsafeMutableRawPointer) -> sqlite3_vfs {
    var vfs = sqlite3_vfs()
    vfs.iVersion = 2
    vfs.szOsFile = Int32(MemoryLayout<FileRecord>.size)
    vfs.mxPathname = 512
    vfs.zName = name
    vfs.pAppData = owner
    vfs.xOpen = openCallback
    vfs.xDelete = deleteCallback
    vfs.xAccess = accessCallback
    vfs.xFullPathname = { _, path, count, output in
        guard let path, let output else { return SQLITE_CANTOPEN }
        let bytes = String(cString: path).utf8CString
        guard bytes.count <= Int(count) else { return SQLITE_CANTOPEN }
        for (index, byte) in bytes.enumerated() { output[index] = byte }
        return SQLITE_OK
    }
    vfs.xRandomness = { vfs, count, output in
        guard let output else { return 0 }
        return BackgroundAssetsTesting.owner(vfs).random.withLock { random in
            for index in 0..<Int(count) { output[index] = CChar(truncatingIfNeeded: random.next()) }
            return count
        }
    }
    // Time passes only when the simulation lets it.
    vfs.xSleep = { _, _ in 0 }
    vfs.xCurrentTime = { vfs, output in
        output?.pointee = Double(julianMilliseconds(vfs)) / 86_400_000
        return SQLITE_OK
    }
    vfs.xCurrentTimeInt64 = { vfs, output in
        output?.pointee = julianMilliseconds(vfs)
        return SQLITE_OK
    }
    vfs.xGetLastError = { _, _, _ in 0 }
    return vfs
}

/// SQLite counts from noon of a day long ago.
private func julianMilliseconds(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> Int64 {
    let (seconds, attoseconds) = owner(vfs).calendar.now.components
    return 210_866_760_000_000 + seconds * 1000 + attoseconds / 1_000_000_000_000_000
}

// MARK: Names

private let openCallback:
    @convention(c) (
        UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, UnsafeMutablePointer<sqlite3_file>?, Int32,
        UnsafeMutablePointer<Int32>?
    ) -> Int32 = { rawVFS, path, rawFile, flags, outputFlags in
        guard let rawFile else { return SQLITE_CANTOPEN }
        let record = UnsafeMutableRawPointer(rawFile).bindMemory(to: FileRecord.self, capacity: 1)
        // Without methods SQLite does not close what was not opened.
        record.initialize(to: FileRecord(base: sqlite3_file(pMethods: nil), open: nil))
        let vfs = owner(rawVFS)
        let name = path.map { String(cString: $0) }
        let opened = vfs.disk.withLock { disk -> (file: Int, handle: Int, life: Int)? in
            let creates = flags & SQLITE_OPEN_CREATE != 0
            if let name, disk.names[name] == nil, creates, disk.fails() { return nil }
            guard let file = disk.open(name, create: creates) else { return nil }
            return (file, disk.handle(), disk.life)
        }
        guard let opened else { return SQLITE_CANTOPEN }
        let isJournal = flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0
        let file = OpenFile(
            vfs: vfs, file: opened.file, handle: opened.handle, life: opened.life,
            deletesOnClose: flags & SQLITE_OPEN_DELETEONCLOSE != 0 ? name : nil,
            syncsNames: isJournal && flags & SQLITE_OPEN_CREATE != 0)
        record.pointee.open = Unmanaged.passRetained(file).toOpaque()
        record.pointee.base.pMethods = UnsafePointer(FileMethods.pointer)
        outputFlags?.pointee = flags
        return SQLITE_OK
    }

private let deleteCallback: @convention(c) (UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, Int32) -> Int32 =
    { vfs, path, sync in
        guard let path else { return IOError.delete }
        let name = String(cString: path)
        return owner(vfs).disk.withLock { disk in
            if disk.fails() { return IOError.delete }
            guard disk.delete(name) else { return IOError.missing }
            if sync != 0 { disk.syncNames() }
            return SQLITE_OK
        }
    }

private let accessCallback:
    @convention(c) (UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, Int32, UnsafeMutablePointer<Int32>?) ->
        Int32 = { vfs, path, _, result in
            let name = path.map { String(cString: $0) } ?? ""
            let size = owner(vfs).disk.withLock { disk in disk.names[name].flatMap { disk.files[$0]?.bytes.count } }
            // As in the unix VFS: an empty file does not count as a journal to recover from.
            result?.pointee = (size ?? 0) > 0 ? 1 : 0
            return SQLITE_OK
        }

// MARK: Files

/// Extended result codes: macros that Swift does not see.
private enum IOError {
    static let shortRead: Int32 = 10 | 2 << 8
    static let read: Int32 = 10 | 1 << 8
    static let write: Int32 = 10 | 3 << 8
    static let sync: Int32 = 10 | 4 << 8
    static let truncate: Int32 = 10 | 6 << 8
    static let size: Int32 = 10 | 7 << 8
    static let delete: Int32 = 10 | 10 << 8
    static let missing: Int32 = 10 | 23 << 8
    static let lock: Int32 = 10 | 15 << 8
}

private enum FileMethods {
    // Written once, before anybody reads it, and never freed.
    nonisolated(unsafe) static let pointer: UnsafeMutablePointer<sqlite3_io_methods> = {
        let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        pointer.initialize(to: make())
        return pointer
    }()

    private static func make() -> sqlite3_io_methods {
        var methods = sqlite3_io_methods()
        methods.iVersion = 1
        methods.xClose = { raw in
            let open = openFile(raw)
            open.vfs.disk.withLock { disk in
                guard open.life == disk.life else { return }
                disk.close(open.file, handle: open.handle)
                if let name = open.deletesOnClose { _ = disk.delete(name) }
            }
            Unmanaged.passUnretained(open).release()
            return SQLITE_OK
        }
        methods.xRead = { raw, output, count, offset in
            openFile(raw).use(writes: false, error: IOError.read) { file in
                file.read(into: UnsafeMutableRawBufferPointer(start: output, count: Int(count)), at: Int(offset))
                    ? SQLITE_OK : IOError.shortRead
            }
        }
        methods.xWrite = { raw, input, count, offset in
            openFile(raw).use(writes: true, error: IOError.write) { file in
                file.write(UnsafeRawBufferPointer(start: input, count: Int(count)), at: Int(offset))
                return SQLITE_OK
            }
        }
        methods.xTruncate = { raw, size in
            openFile(raw).use(writes: true, error: IOError.truncate) { file in
                file.truncate(to: Int(size))
                return SQLITE_OK
            }
        }
        methods.xSync = { raw, _ in
            let open = openFile(raw)
            let result = open.use(writes: true, error: IOError.sync) { file in
                file.sync()
                return SQLITE_OK
            }
            if result == SQLITE_OK && open.syncsNames {
                open.vfs.disk.withLock { $0.syncNames() }
                open.syncsNames = false
            }
            return result
        }
        methods.xFileSize = { raw, output in
            openFile(raw).use(writes: false, error: IOError.size) { file in
                output?.pointee = sqlite3_int64(file.bytes.count)
                return SQLITE_OK
            }
        }
        addLocks(&methods)
        methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
        methods.xSectorSize = { _ in Int32(MemoryDisk.pageSize) }
        // As the unix VFS says: a torn write spoils nothing around it.
        methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
        return methods
    }

    private static func addLocks(_ methods: inout sqlite3_io_methods) {
        methods.xLock = { raw, level in
            let open = openFile(raw)
            return open.use(writes: false, error: IOError.lock) {
                $0.lock(open.handle, level) ? SQLITE_OK : SQLITE_BUSY
            }
        }
        methods.xUnlock = { raw, level in
            let open = openFile(raw)
            // After a power cut there is nothing to unlock.
            _ = open.use(writes: false, error: SQLITE_OK) { file in
                file.unlock(open.handle, level)
                return SQLITE_OK
            }
            return SQLITE_OK
        }
        methods.xCheckReservedLock = { raw, output in
            openFile(raw).use(writes: false, error: IOError.lock) { file in
                output?.pointee = file.locks.values.contains { $0 >= LockLevel.reserved } ? 1 : 0
                return SQLITE_OK
            }
        }
    }
}
