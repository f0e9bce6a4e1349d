// The contents of a memory tree's files, and the space they take.
internal import AssetsOS
internal import Glibc

extension MemoryTreeDisk {
    mutating func openFile(_ path: String) throws(SystemCallError) -> UInt64 {
        let entry = try parent(of: path)
        guard let known = inode(at: entry) else { return add(.file(File(openCount: 1)), at: entry) }
        if case .directory = nodes[known] { throw SystemCallError(call: "openat2", number: EISDIR) }
        _ = try file(at: path)
        withFile(known) { $0.openCount += 1 }
        return known
    }

    mutating func closeFile(_ inode: UInt64, life: Int) {
        guard life == self.life else { return }
        withFile(inode) { $0.openCount -= 1 }
        forgetSpace(of: inode)
    }

    mutating func replace(_ path: String, with bytes: [UInt8]) throws(SystemCallError) {
        let entry = try parent(of: path)
        let replaced = inode(at: entry)
        if let replaced, case .directory = nodes[replaced] { throw SystemCallError(call: "renameat", number: EISDIR) }
        guard used + Int64(bytes.count) <= capacity else { throw SystemCallError(call: "write", number: ENOSPC) }
        used += Int64(bytes.count)
        _ = add(.file(File(bytes: bytes, syncedCount: bytes.count)), at: entry)
        if let replaced { release(replaced) }
        syncNames(of: entry.directory)
    }

    /// Writes as much as there is room for.
    mutating func append(_ bytes: [UInt8], to inode: UInt64) throws(SystemCallError) {
        let free = capacity - used
        var isWhole = true
        withFile(inode) { file in
            let room = free + file.space - Int64(file.bytes.count)
            let count = Int(max(0, min(Int64(bytes.count), room)))
            isWhole = count == bytes.count
            file.bytes += bytes[..<count]
        }
        if !isWhole { throw SystemCallError(call: "pwrite", number: ENOSPC) }
    }

    mutating func truncate(_ inode: UInt64, to length: Int64) throws(SystemCallError) {
        guard length >= 0 else { throw SystemCallError(call: "ftruncate", number: EINVAL) }
        let current = Int64(bytes(of: inode).count)
        if length > current {
            // A hole that reads as zeros.
            return try append([UInt8](repeating: 0, count: Int(length - current)), to: inode)
        }
        withFile(inode) { file in
            let kept = Int(length)
            if kept < file.syncedCount {
                file.lostTail = Array(file.bytes[kept..<file.syncedCount]) + file.lostTail
                file.syncedCount = kept
            }
            file.bytes.removeSubrange(kept...)
            file.reserved = min(file.reserved, length)
        }
    }

    mutating func reserve(_ total: Int64, for inode: UInt64) throws(SystemCallError) {
        guard case .file(let file) = nodes[inode], total > file.space else { return }
        guard used + total - file.space <= capacity else { throw SystemCallError(call: "fallocate", number: ENOSPC) }
        withFile(inode) { $0.reserved = total }
    }

    func allocated(to inode: UInt64) -> Int64 {
        guard case .file(let file) = nodes[inode] else { return 0 }
        return file.space
    }

    mutating func syncFile(_ inode: UInt64) {
        withFile(inode) { file in
            file.syncedCount = file.bytes.count
            file.lostTail = []
            file.syncedAttributes = file.attributes
        }
    }

    func bytes(of inode: UInt64) -> [UInt8] {
        guard case .file(let file) = nodes[inode] else { return [] }
        return file.bytes
    }

    /// On files only; the attributes of a directory are as durable as they are here.
    mutating func setAttribute(_ path: String, _ name: String, _ value: String) throws(SystemCallError) {
        let inode = try existing(path)
        if case .directory = nodes[inode] {
            directoryAttributes[inode, default: [:]][name] = value
        } else {
            _ = try file(at: path)
            withFile(inode) { $0.attributes[name] = value }
        }
    }

    func attribute(_ path: String, _ name: String) throws(SystemCallError) -> String? {
        let inode = try existing(path)
        if case .directory = nodes[inode] { return directoryAttributes[inode]?[name] }
        return try file(at: path).attributes[name]
    }

    /// Changes a file in place: taken out of the table meanwhile, so that its bytes are not copied.
    mutating func withFile(_ inode: UInt64, _ body: (inout File) -> Void) {
        guard case .file(var file) = nodes[inode] else { return }
        nodes[inode] = .directory
        let before = file.space
        body(&file)
        used += file.space - before
        nodes[inode] = .file(file)
    }

    /// Takes note that an inode lost its last name.
    mutating func release(_ inode: UInt64) {
        withFile(inode) { $0.isNamed = false }
        forgetSpace(of: inode)
    }

    /// What has no name takes no space once it is closed too. It stays in memory: a power cut may bring it back.
    mutating func forgetSpace(of inode: UInt64) {
        guard case .file(let file) = nodes[inode], !file.isNamed, file.openCount == 0 else { return }
        used -= file.space
        garbage += 1
    }
}
