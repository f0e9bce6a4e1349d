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
    var calls = 0
    /// Power cuts and killed processes so far: open files of an earlier life are dead.
    var life = 0
    /// Each begins a new storage epoch.
    var powerCuts = 0
    var used: Int64 = 0

    var nodes: [UInt64: Node] = [rootInode: .directory]
    var names: [UInt64: [String: UInt64]] = [rootInode: [:]]
    var durableNames: [UInt64: [String: UInt64]] = [rootInode: [:]]
    var pending: [Change] = []
    var directoryAttributes: [UInt64: [String: String]] = [:]
    var nextInode: UInt64 = rootInode + 1
    /// Files without a name that are still in memory.
    var garbage = 0
    static let garbageMax = 1024

    var nodeCount: Int { nodes.count }

    init(capacity: Int64) { self.capacity = capacity }

    /// Counts a call; the error number with which it must fail.
    mutating func nextFault(_ name: String, _ path: String) -> Int32? {
        calls += 1
        return fault?(MemoryTree.Call(number: calls, name: name, path: path))
    }

    // MARK: Paths

    static func components(_ path: String) throws(SystemCallError) -> [String] {
        let names = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let isSound = names.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." && !$0.utf8.contains(0) }
        guard isSound else { throw SystemCallError(call: "openat2", number: EINVAL) }
        guard names.allSatisfy({ $0.utf8.count <= 255 }) else {
            throw SystemCallError(call: "openat2", number: ENAMETOOLONG)
        }
        return names
    }

    /// The directory that a path's last name is in, and that name.
    func parent(of path: String) throws(SystemCallError) -> Entry {
        var names = try Self.components(path)
        let last = names.removeLast()
        return Entry(directory: try directory(names), name: last)
    }

    func directory(_ components: [String]) throws(SystemCallError) -> UInt64 {
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

    func directory(at path: String) throws(SystemCallError) -> UInt64 {
        path == "." ? Self.rootInode : try directory(try Self.components(path))
    }

    func inode(at entry: Entry) -> UInt64? { names[entry.directory]?[entry.name] }

    func existing(_ path: String) throws(SystemCallError) -> UInt64 {
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
    mutating func change(_ entries: [(entry: Entry, inode: UInt64?)]) {
        for (entry, inode) in entries { names[entry.directory]?[entry.name] = inode }
        pending.append(Change(entries: entries))
    }

    mutating func add(_ node: Node, at entry: Entry) -> UInt64 {
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
        case .file(let file):
            return FileStatus(
                kind: .file, inode: inode, size: Int64(file.bytes.count), allocated: allocated(to: inode))
        case .directory: return FileStatus(kind: .directory, inode: inode, size: 4096)
        case .link(let target): return FileStatus(kind: .link, inode: inode, size: Int64(target.utf8.count))
        }
    }

    func usage(of path: String, filesMax: Int64) throws(SystemCallError) -> FolderUsage {
        var usage = FolderUsage()
        guard let status = try status(path) else { return usage }
        usage.files = 1
        usage.bytes = status.allocated
        guard status.kind == .directory else { return usage }
        for name in try list(path) {
            guard usage.files <= filesMax else {
                usage.isComplete = false
                break
            }
            usage += try self.usage(of: path + "/" + name, filesMax: filesMax)
        }
        return usage
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

    func checkReplacement(of old: UInt64, by new: UInt64) throws(SystemCallError) {
        var newIsDirectory = false
        if case .directory = nodes[new] { newIsDirectory = true }
        if case .directory = nodes[old] {
            guard newIsDirectory else { throw SystemCallError(call: "renameat2", number: EISDIR) }
            guard names[old]?.isEmpty ?? true else { throw SystemCallError(call: "renameat2", number: ENOTEMPTY) }
        } else if newIsDirectory {
            throw SystemCallError(call: "renameat2", number: ENOTDIR)
        }
    }

    func isInside(_ inode: UInt64, _ directory: UInt64) -> Bool {
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

    mutating func removeEmptyDirectory(_ path: String) throws(SystemCallError) -> Bool {
        let entry: Entry
        do throws(SystemCallError) {
            entry = try parent(of: path)
        } catch  where error.number == ENOENT || error.number == ENOTDIR {
            return true
        }
        guard let inode = inode(at: entry) else { return true }
        guard case .directory = nodes[inode], names[inode]?.isEmpty != false else { return false }
        removeAll(entry)
        return true
    }

    /// Leaves first, as a real removal goes.
    mutating func removeAll(_ entry: Entry) {
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
}
