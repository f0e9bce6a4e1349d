// A device directory in memory, which forgets what was not synced.
package import AssetsOS
internal import Glibc

/// Files below one root that exists only in the simulation.
///
/// Harder than most real file systems, as POSIX allows: a file's bytes survive a power cut once the file was synced,
/// a name once its directory was; a rename is all or nothing, and syncing either directory makes all of it durable.
/// Only `replace` syncs by itself. Inode numbers are given in order and never twice.
package final class MemoryTree: FileTree {
    /// One call, before it does anything.
    package struct Call: Hashable, Sendable {
        /// Counted from 1.
        package var number: Int
        /// The name of the method, for example `rename`.
        package var name: String
        /// Empty for calls on an open file.
        package var path: String
    }

    package let root: String
    private let disk: Guarded<MemoryTreeDisk>

    /// - Parameter capacity: Bytes of the simulated file system.
    package init(root: String = "/device", capacity: Int64 = 1 << 40) {
        self.root = root
        disk = Guarded(MemoryTreeDisk(capacity: capacity))
    }

    // MARK: Trouble

    /// Forgets what was not synced; open files are dead from now on and answer EIO. The storage epoch is a new one.
    package func powerCut(_ cut: PowerCut = .forgetsAll) { disk.withLock { $0.cutPower(cut) } }

    /// Closes all files as the kernel does for a killed process; they answer EIO from now on. Nothing is forgotten.
    package func endProcess() { disk.withLock { $0.endProcess() } }

    /// Removes everything at once and frees its memory: for trees that something dead holds on to.
    package func erase() { disk.withLock { $0 = MemoryTreeDisk(capacity: $0.capacity) } }

    /// Asked before every call: the error number with which it fails, or nil. It must not use the tree.
    package func setFault(_ fault: (@Sendable (Call) -> Int32?)?) { disk.withLock { $0.fault = fault } }

    /// Lets one call fail, counted from the next one on as 1, and nothing of it is done, but an append that writes half.
    package func fail(call number: Int, with error: Int32) {
        let first = calls
        setFault { $0.number == first + number ? error : nil }
    }

    /// Calls so far.
    package var calls: Int { disk.withLock { $0.calls } }

    /// Files, directories and links that are kept, with those that only a power cut could bring back.
    package var filesInMemory: Int { disk.withLock { $0.nodeCount } }

    /// Makes the file system larger or smaller; what is there stays.
    package func setCapacity(_ bytes: Int64) { disk.withLock { $0.capacity = bytes } }

    // MARK: FileTree

    /// Counts the call and lets it fail when it should, then works on the disk.
    private func perform<R: Sendable>(
        _ name: String, _ path: String, _ body: (inout MemoryTreeDisk) throws(SystemCallError) -> R
    ) throws(SystemCallError) -> R {
        try disk.withLock { (disk) throws(SystemCallError) -> R in
            if let number = disk.nextFault(name, path) { throw SystemCallError(call: "simulated", number: number) }
            return try body(&disk)
        }
    }

    package func makeDirectory(_ path: String) throws(SystemCallError) {
        try perform("makeDirectory", path) { (disk) throws(SystemCallError) in try disk.makeDirectory(path) }
    }

    package func openAppendable(_ path: String) throws(SystemCallError) -> any AppendableFile {
        let (inode, life) = try perform("openAppendable", path) { (disk) throws(SystemCallError) in
            (try disk.openFile(path), disk.life)
        }
        return MemoryFile(disk: disk, inode: inode, life: life)
    }

    package func status(_ path: String) throws(SystemCallError) -> FileStatus? {
        try perform("status", path) { (disk) throws(SystemCallError) in try disk.status(path) }
    }

    package func list(_ path: String) throws(SystemCallError) -> [String] {
        try perform("list", path) { (disk) throws(SystemCallError) in try disk.list(path) }
    }

    package func usage(of path: String, filesMax: Int64) throws(SystemCallError) -> FolderUsage {
        try perform("usage", path) { (disk) throws(SystemCallError) in try disk.usage(of: path, filesMax: filesMax) }
    }

    package func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8] {
        try perform("read", path) { (disk) throws(SystemCallError) in
            let file = try disk.file(at: path)
            guard file.bytes.count <= limit else { throw SystemCallError(call: "read", number: EFBIG) }
            return file.bytes
        }
    }

    package func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(SystemCallError) {
        try perform("replace", path) { (disk) throws(SystemCallError) in try disk.replace(path, with: bytes) }
    }

    package func rename(_ from: String, to: String, exclusively: Bool) throws(SystemCallError) {
        try perform("rename", from) { (disk) throws(SystemCallError) in
            try disk.rename(from, to: to, exclusively: exclusively)
        }
    }

    package func moveFiles(
        _ names: [Renaming], from: String, to: String
    ) throws(SystemCallError) -> [SystemCallError?] {
        names.map { name in
            do throws(SystemCallError) {
                try rename("\(from)/\(name.from)", to: "\(to)/\(name.to)", exclusively: false)
                return nil
            } catch { return error }
        }
    }

    package func inodes(of names: [String], in folder: String) throws(SystemCallError) -> [UInt64?] {
        var found: [UInt64?] = []
        for name in names { found.append(try status("\(folder)/\(name)")?.inode) }
        return found
    }

    package func removeEmptyDirectory(_ path: String) throws(SystemCallError) -> Bool {
        try perform("removeEmptyDirectory", path) { (disk) throws(SystemCallError) in
            try disk.removeEmptyDirectory(path)
        }
    }

    package func syncDirectory(_ path: String) throws(SystemCallError) {
        try perform("syncDirectory", path) { (disk) throws(SystemCallError) in try disk.syncDirectory(path) }
    }

    package func remove(_ path: String) throws(SystemCallError) {
        try perform("remove", path) { (disk) throws(SystemCallError) in try disk.remove(path) }
    }

    package func replaceLink(_ path: String, target: String) throws(SystemCallError) {
        try perform("replaceLink", path) { (disk) throws(SystemCallError) in
            try disk.replaceLink(path, target: target)
        }
    }

    package func readLink(_ path: String) throws(SystemCallError) -> String {
        try perform("readLink", path) { (disk) throws(SystemCallError) in try disk.readLink(path) }
    }

    package func setAttribute(_ path: String, name: String, value: String) throws(SystemCallError) {
        try perform("setAttribute", path) { (disk) throws(SystemCallError) in
            guard name.hasPrefix("user.") else { throw SystemCallError(call: "fsetxattr", number: EOPNOTSUPP) }
            try disk.setAttribute(path, name, value)
        }
    }

    package func attribute(_ path: String, name: String) throws(SystemCallError) -> String? {
        try perform("attribute", path) { (disk) throws(SystemCallError) in try disk.attribute(path, name) }
    }

    /// Nothing in a simulation opens a file for writing that is finished, so the right itself is not kept.
    package func makeReadOnly(_ path: String) throws(SystemCallError) {
        try perform("makeReadOnly", path) { (disk) throws(SystemCallError) in _ = try disk.attribute(path, "user.none")
        }
    }

    package func space() throws(SystemCallError) -> (free: Int64, total: Int64) {
        try perform("space", "") { (disk) throws(SystemCallError) in
            (free: max(0, disk.capacity - disk.used), total: disk.capacity)
        }
    }

    package func storageEpoch() throws(SystemCallError) -> String {
        try perform("storageEpoch", "") { (disk) throws(SystemCallError) in "memory:\(disk.powerCuts)" }
    }
}

/// An open file of a memory tree. It outlives its name, but not a power cut.
private final class MemoryFile: AppendableFile {
    let inode: UInt64
    private let disk: Guarded<MemoryTreeDisk>
    private let life: Int

    init(disk: Guarded<MemoryTreeDisk>, inode: UInt64, life: Int) {
        self.disk = disk
        self.inode = inode
        self.life = life
    }

    deinit { disk.withLock { [life, inode] in $0.closeFile(inode, life: life) } }

    private func perform<R: Sendable>(
        _ name: String, _ body: (inout MemoryTreeDisk) throws(SystemCallError) -> R
    ) throws(SystemCallError) -> R {
        try disk.withLock { [life] (disk) throws(SystemCallError) -> R in
            guard life == disk.life else { throw SystemCallError(call: "simulated", number: EIO) }
            if let number = disk.nextFault(name, "") { throw SystemCallError(call: "simulated", number: number) }
            return try body(&disk)
        }
    }

    var length: Int64 {
        disk.withLock { [life, inode] disk in life == disk.life ? Int64(disk.bytes(of: inode).count) : 0 }
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError) {
        // Copied here, because memory of the caller cannot go behind the lock.
        let copy = Array(bytes)
        try disk.withLock { [life, inode] (disk) throws(SystemCallError) in
            guard life == disk.life else { throw SystemCallError(call: "simulated", number: EIO) }
            guard let number = disk.nextFault("append", "") else { return try disk.append(copy, to: inode) }
            // As after a short write: some of it is there.
            try disk.append(Array(copy.prefix(copy.count / 2)), to: inode)
            throw SystemCallError(call: "simulated", number: number)
        }
    }

    func truncate(to length: Int64) throws(SystemCallError) {
        try perform("truncate") { [inode] (disk) throws(SystemCallError) in try disk.truncate(inode, to: length) }
    }

    func reserve(total: Int64) throws(SystemCallError) -> Bool {
        try perform("reserve") { [inode] (disk) throws(SystemCallError) in try disk.reserve(total, for: inode) }
        return true
    }

    var allocated: Int64 {
        get throws(SystemCallError) {
            try perform("allocated") { [inode] (disk) throws(SystemCallError) in disk.allocated(to: inode) }
        }
    }

    func beginSync() {}

    func sync() throws(SystemCallError) {
        try perform("sync") { [inode] (disk) throws(SystemCallError) in disk.syncFile(inode) }
    }

    func setAttribute(name: String, value: String) throws(SystemCallError) {
        try perform("setAttribute") { [inode] (disk) throws(SystemCallError) in
            disk.withFile(inode) { $0.attributes[name] = value }
        }
    }

    func read(
        from offset: Int64, count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(SystemCallError) {
        let bytes = try perform("readFile") { [inode] (disk) throws(SystemCallError) in disk.bytes(of: inode) }
        guard offset >= 0 else { throw SystemCallError(call: "pread", number: EINVAL) }
        guard offset < bytes.count else { return }
        let end = min(count, Int64(bytes.count) - offset) + offset
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[Int(offset)..<Int(end)])) }
    }
}
