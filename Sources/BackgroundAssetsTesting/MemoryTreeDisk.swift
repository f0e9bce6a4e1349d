// What a memory tree holds now, and what it would hold after a power cut.
internal import AssetsOS
internal import Glibc

/// Files, directories and links by inode; names as changes that become durable directory by directory.
struct MemoryTreeDisk {
    static let rootInode: UInt64 = 2

    struct File {
        var bytes: [UInt8] = []
        /// Bytes from the start that survive.
        var syncedCount = 0
        /// Synced bytes that were cut off since: until the next sync a power cut brings them back.
        var lostTail: [UInt8] = []
        /// Space set aside, from the start of the file.
        var reserved: Int64 = 0
        var openCount = 0
        /// False once its last name is gone.
        var isNamed = true
        var attributes: [String: String] = [:]
        var syncedAttributes: [String: String] = [:]

        /// Bytes it takes from the file system.
        var space: Int64 { max(Int64(bytes.count), reserved) }
    }

    enum Node {
        case file(File)
        case directory
        case link(String)
    }

    /// A name in a directory.
    struct Entry: Hashable {
        var directory: UInt64
        var name: String
    }

    /// Names that change together.
    struct Change {
        var entries: [(entry: Entry, inode: UInt64?)]
    }

    var capacity: Int64
    var fault: (@Sendable (MemoryTree.Call) -> Int32?)?
    private(set) var calls = 0
    private(set) var life = 0
    private(set) var used: Int64 = 0

    private var nodes: [UInt64: Node] = [rootInode: .directory]
    private var names: [UInt64: [String: UInt64]] = [rootInode: [:]]
    private var durableNames: [UInt64: [String: UInt64]] = [rootInode: [:]]
    private var pending: [Change] = []
    private var directoryAttributes: [UInt64: [String: String]] = [:]
    private var nextInode: UInt64 = rootInode + 1
    /// Files without a name that are still in memory.
    private var garbage = 0
    private static let garbageMax = 1024

    var nodeCount: Int { nodes.count }

    init(capacity: Int64) { self.capacity = capacity }

    /// Counts a call; the error number with which it must fail.
    mutating func nextFault(_ name: String, _ path: String) -> Int32? {
        calls += 1
        return fault?(MemoryTree.Call(number: calls, name: name, path: path))
    }

    // MARK: Paths

    private static func components(_ path: String) throws(SystemCallError) -> [String] {
        let names = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let isSound = names.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." && !$0.utf8.contains(0) }
        guard isSound else { throw SystemCallError(call: "openat2", number: EINVAL) }
        guard names.allSatisfy({ $0.utf8.count <= 255 }) else {
            throw SystemCallError(call: "openat2", number: ENAMETOOLONG)
        }
        return names
    }

    /// The directory that a path's last name is in, and that name.
    private func parent(of path: String) throws(SystemCallError) -> Entry {
        var names = try Self.components(path)
        let last = names.removeLast()
        return Entry(directory: try directory(names), name: last)
    }

    private func directory(_ components: [String]) throws(SystemCallError) -> UInt64 {
        var inode = Self.rootInode
        for name in components {
            guard let next = names[inode]?[name] else { throw SystemCallError(call: "openat2", number: ENOENT) }
            inode = next
            switch nodes[inode] {
            case .directory: continue
            case .link: throw SystemCallError(call: "openat2", number: ELOOP)
            case .file, nil: throw SystemCallError(call: "openat2", number: ENOTDIR)
            }
        }
        return inode
    }

    private func directory(at path: String) throws(SystemCallError) -> UInt64 {
        path == "." ? Self.rootInode : try directory(try Self.components(path))
    }

    private func inode(at entry: Entry) -> UInt64? { names[entry.directory]?[entry.name] }

    private func existing(_ path: String) throws(SystemCallError) -> UInt64 {
        guard let inode = inode(at: try parent(of: path)) else {
            throw SystemCallError(call: "openat2", number: ENOENT)
        }
        return inode
    }

    func file(at path: String) throws(SystemCallError) -> File {
        switch nodes[try existing(path)] {
        case .file(let file): return file
        case .link: throw SystemCallError(call: "openat2", number: ELOOP)
        case .directory, nil: throw SystemCallError(call: "openat2", number: EINVAL)
        }
    }

    // MARK: Names

    /// Changes names now; a power cut forgets it until a directory of it is synced.
    private mutating func change(_ entries: [(entry: Entry, inode: UInt64?)]) {
        for (entry, inode) in entries { names[entry.directory]?[entry.name] = inode }
        pending.append(Change(entries: entries))
    }

    private mutating func add(_ node: Node, at entry: Entry) -> UInt64 {
        let inode = nextInode
        nextInode += 1
        nodes[inode] = node
        if case .directory = node {
            names[inode] = [:]
            durableNames[inode] = [:]
        }
        change([(entry, inode)])
        return inode
    }

    mutating func makeDirectory(_ path: String) throws(SystemCallError) {
        var current = Self.rootInode
        for name in try Self.components(path) {
            let entry = Entry(directory: current, name: name)
            guard let known = inode(at: entry) else {
                current = add(.directory, at: entry)
                continue
            }
            switch nodes[known] {
            case .directory: current = known
            case .link: throw SystemCallError(call: "openat2", number: ELOOP)
            case .file, nil: throw SystemCallError(call: "openat2", number: ENOTDIR)
            }
        }
    }

    func status(_ path: String) throws(SystemCallError) -> FileStatus? {
        let entry: Entry
        do throws(SystemCallError) {
            entry = try parent(of: path)
        } catch  where error.number == ENOENT || error.number == ENOTDIR {
            return nil
        }
        guard let inode = inode(at: entry), let node = nodes[inode] else { return nil }
        switch node {
        case .file(let file): return FileStatus(kind: .file, inode: inode, size: Int64(file.bytes.count))
        case .directory: return FileStatus(kind: .directory, inode: inode, size: 4096)
        case .link(let target): return FileStatus(kind: .link, inode: inode, size: Int64(target.utf8.count))
        }
    }

    func list(_ path: String) throws(SystemCallError) -> [String] {
        let entries = names[try directory(at: path)] ?? [:]
        return entries.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    mutating func rename(_ from: String, to: String, exclusively: Bool) throws(SystemCallError) {
        let source = try parent(of: from)
        let target = try parent(of: to)
        guard let moved = inode(at: source) else { throw SystemCallError(call: "renameat2", number: ENOENT) }
        if let replaced = inode(at: target) {
            if exclusively { throw SystemCallError(call: "renameat2", number: EEXIST) }
            if replaced == moved { return }
            try checkReplacement(of: replaced, by: moved)
        }
        if case .directory = nodes[moved], isInside(target.directory, moved) {
            throw SystemCallError(call: "renameat2", number: EINVAL)
        }
        let replaced = inode(at: target)
        change([(source, nil), (target, moved)])
        if let replaced { release(replaced) }
    }

    private func checkReplacement(of old: UInt64, by new: UInt64) throws(SystemCallError) {
        var newIsDirectory = false
        if case .directory = nodes[new] { newIsDirectory = true }
        if case .directory = nodes[old] {
            guard newIsDirectory else { throw SystemCallError(call: "renameat2", number: EISDIR) }
            guard names[old]?.isEmpty ?? true else { throw SystemCallError(call: "renameat2", number: ENOTEMPTY) }
        } else if newIsDirectory {
            throw SystemCallError(call: "renameat2", number: ENOTDIR)
        }
    }

    private func isInside(_ inode: UInt64, _ directory: UInt64) -> Bool {
        if inode == directory { return true }
        return (names[directory] ?? [:]).values.contains { child in
            if case .directory = nodes[child] { return isInside(inode, child) }
            return false
        }
    }

    mutating func remove(_ path: String) throws(SystemCallError) {
        let entry: Entry
        do throws(SystemCallError) {
            entry = try parent(of: path)
        } catch  where error.number == ENOENT || error.number == ENOTDIR {
            return
        }
        removeAll(entry)
    }

    /// Leaves first, as a real removal goes.
    private mutating func removeAll(_ entry: Entry) {
        guard let inode = inode(at: entry) else { return }
        if case .directory = nodes[inode] {
            for name in (names[inode] ?? [:]).keys.sorted() { removeAll(Entry(directory: inode, name: name)) }
        }
        change([(entry, nil)])
        release(inode)
    }

    mutating func replaceLink(_ path: String, target: String) throws(SystemCallError) {
        guard !target.isEmpty, !target.utf8.contains(0) else {
            throw SystemCallError(call: "symlinkat", number: EINVAL)
        }
        let entry = try parent(of: path)
        let replaced = inode(at: entry)
        if let replaced, case .directory = nodes[replaced] { throw SystemCallError(call: "renameat", number: EISDIR) }
        _ = add(.link(target), at: entry)
        if let replaced { release(replaced) }
    }

    func readLink(_ path: String) throws(SystemCallError) -> String {
        guard case .link(let target) = nodes[try existing(path)] else {
            throw SystemCallError(call: "readlinkat", number: EINVAL)
        }
        return target
    }

    // MARK: Files

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
    private mutating func withFile(_ inode: UInt64, _ body: (inout File) -> Void) {
        guard case .file(var file) = nodes[inode] else { return }
        nodes[inode] = .directory
        let before = file.space
        body(&file)
        used += file.space - before
        nodes[inode] = .file(file)
    }

    /// Takes note that an inode lost its last name.
    private mutating func release(_ inode: UInt64) {
        withFile(inode) { $0.isNamed = false }
        forgetSpace(of: inode)
    }

    /// What has no name takes no space once it is closed too. It stays in memory: a power cut may bring it back.
    private mutating func forgetSpace(of inode: UInt64) {
        guard case .file(let file) = nodes[inode], !file.isNamed, file.openCount == 0 else { return }
        used -= file.space
        garbage += 1
    }

    // MARK: Durability

    mutating func syncDirectory(_ path: String) throws(SystemCallError) { syncNames(of: try directory(at: path)) }

    /// Makes durable what concerns a directory, with every earlier change of the same names.
    private mutating func syncNames(of directory: UInt64) {
        var needed: Set<Entry> = []
        var chosen: [Bool] = Array(repeating: false, count: pending.count)
        for index in pending.indices.reversed() {
            let entries = pending[index].entries.map(\.entry)
            guard entries.contains(where: { $0.directory == directory || needed.contains($0) }) else { continue }
            chosen[index] = true
            needed.formUnion(entries)
        }
        commit(chosen)
    }

    private mutating func commit(_ chosen: [Bool]) {
        var left: [Change] = []
        for (index, change) in pending.enumerated() {
            guard chosen[index] else {
                left.append(change)
                continue
            }
            for (entry, inode) in change.entries { durableNames[entry.directory]?[entry.name] = inode }
        }
        pending = left
        if garbage > Self.garbageMax { sweep() }
    }

    /// Frees what no power cut can bring back.
    private mutating func sweep() {
        garbage = 0
        var kept: Set<UInt64> = [Self.rootInode]
        for entries in names.values { kept.formUnion(entries.values) }
        for entries in durableNames.values { kept.formUnion(entries.values) }
        for change in pending { kept.formUnion(change.entries.compactMap(\.inode)) }
        for (inode, node) in nodes where !kept.contains(inode) {
            if case .file(let file) = node, file.openCount > 0 { continue }
            nodes[inode] = nil
            names[inode] = nil
            durableNames[inode] = nil
            directoryAttributes[inode] = nil
        }
    }

    mutating func cutPower(_ cut: PowerCut) {
        var coins = cut.coins(stream: "tree")
        surviveByChance(&coins)
        pending = []
        var reached: [UInt64] = []
        reach(Self.rootInode, &reached)
        let kept = Set(reached)
        for inode in nodes.keys.sorted() where !kept.contains(inode) {
            nodes[inode] = nil
            durableNames[inode] = nil
            directoryAttributes[inode] = nil
        }
        names = durableNames
        for inode in reached { withFile(inode) { $0.cutPower(&coins) } }
        used = reached.reduce(0) { sum, inode in
            if case .file(let file) = nodes[inode] { return sum + file.space }
            return sum
        }
        life += 1
        fault = nil
    }

    /// Lets some changes of names through; a change needs every earlier one of the same names.
    private mutating func surviveByChance(_ coins: inout SeededSequence?) {
        guard coins != nil else { return }
        var blocked: Set<Entry> = []
        let chosen = pending.map { change in
            let entries = change.entries.map(\.entry)
            let survives = !entries.contains { blocked.contains($0) } && (coins?.coin() ?? false)
            if !survives { blocked.formUnion(entries) }
            return survives
        }
        commit(chosen)
    }

    private func reach(_ inode: UInt64, _ reached: inout [UInt64]) {
        reached.append(inode)
        let children = durableNames[inode] ?? [:]
        for name in children.keys.sorted() { if let child = children[name] { reach(child, &reached) } }
    }
}

extension MemoryTreeDisk.File {
    /// Goes back to what was synced; by chance some of the rest is there too, or only its length.
    fileprivate mutating func cutPower(_ coins: inout SeededSequence?) {
        let unsynced = Array(bytes[syncedCount...])
        bytes.removeSubrange(syncedCount...)
        if coins?.coin() ?? false {
            let count = coins?.next(below: unsynced.count + 1) ?? 0
            let isThere = coins?.coin() ?? false
            bytes += isThere ? Array(unsynced[..<count]) : [UInt8](repeating: 0, count: count)
        } else {
            bytes += lostTail
        }
        syncedCount = bytes.count
        lostTail = []
        attributes = syncedAttributes
        openCount = 0
        isNamed = true
        reserved = 0
    }
}
