// The files of a memory VFS: what they hold, and what they would hold after a power cut.

/// Files by name, with a page-wise memory of what was synced.
struct MemoryDisk {
    static let pageSize = 4096

    struct File {
        var bytes: [UInt8] = []
        var durable: [UInt8] = []
        /// Pages that were written since the last sync.
        var dirty: Set<Int> = []
        var openCount = 0
        /// Lock levels of the handles that hold one, by handle.
        var locks: [Int: Int32] = [:]
    }

    var files: [Int: File] = [:]
    private(set) var names: [String: Int] = [:]
    private(set) var durableNames: [String: Int] = [:]
    private var nextFile = 1
    private var nextHandle = 1
    /// Power cuts and killed processes so far: handles of an earlier life are dead.
    private(set) var life = 0

    var fault: DiskFault?
    private(set) var calls = 0

    /// Counts a call; true when it must fail.
    mutating func fails() -> Bool {
        calls += 1
        return fault?.hits(calls) ?? false
    }

    // MARK: Names

    mutating func handle() -> Int {
        nextHandle += 1
        return nextHandle
    }

    /// Finds or makes a file; a nil name makes one that nobody else finds.
    mutating func open(_ name: String?, create: Bool) -> Int? {
        if let name, let known = names[name] {
            files[known]?.openCount += 1
            return known
        }
        guard create || name == nil else { return nil }
        let file = nextFile
        nextFile += 1
        files[file] = File(openCount: 1)
        if let name { names[name] = file }
        return file
    }

    mutating func close(_ file: Int, handle: Int) {
        files[file]?.openCount -= 1
        files[file]?.locks[handle] = nil
        collect(file)
    }

    /// False when there is none.
    mutating func delete(_ name: String) -> Bool {
        guard let file = names.removeValue(forKey: name) else { return false }
        collect(file)
        return true
    }

    mutating func syncNames() {
        let before = durableNames
        durableNames = names
        for file in before.values { collect(file) }
    }

    private mutating func collect(_ file: Int) {
        guard files[file]?.openCount ?? 1 <= 0 else { return }
        if !names.values.contains(file) && !durableNames.values.contains(file) { files[file] = nil }
    }

    // MARK: Power

    /// Closes everything as the kernel does for a killed process, and begins a new life.
    mutating func endProcess() {
        for file in files.keys.sorted() {
            files[file]?.openCount = 0
            files[file]?.locks = [:]
            collect(file)
        }
        life += 1
        fault = nil
    }

    /// Forgets what was not synced, closes everything, and begins a new life.
    mutating func cutPower(_ cut: PowerCut) {
        var coins = cut.coins(stream: "vfs")
        for name in Set(names.keys).union(durableNames.keys).sorted() where names[name] != durableNames[name] {
            if coins?.coin() ?? false { durableNames[name] = names[name] }
        }
        names = durableNames
        let kept = Set(names.values)
        for file in files.keys.sorted() {
            guard kept.contains(file) else {
                files[file] = nil
                continue
            }
            files[file]?.cutPower(&coins)
        }
        life += 1
        fault = nil
    }
}

extension MemoryDisk.File {
    /// Fills the target; false when the file ends before, and the rest is zeros.
    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        let start = min(offset, bytes.count)
        let count = min(target.count, bytes.count - start)
        bytes.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
        let rest = UnsafeMutableRawBufferPointer(rebasing: target[count...])
        if !rest.isEmpty { rest.initializeMemory(as: UInt8.self, repeating: 0) }
        return rest.isEmpty
    }

    mutating func write(_ source: UnsafeRawBufferPointer, at offset: Int) {
        let end = offset + source.count
        Self.grow(&bytes, to: end)
        bytes.withUnsafeMutableBytes {
            UnsafeMutableRawBufferPointer(rebasing: $0[offset..<end]).copyMemory(from: source)
        }
        markDirty(offset..<end)
    }

    mutating func truncate(to size: Int) {
        guard size < bytes.count else { return }
        markDirty(size..<bytes.count)
        bytes.removeSubrange(size...)
    }

    mutating func sync() {
        if durable.count > bytes.count { durable.removeSubrange(bytes.count...) }
        Self.grow(&durable, to: bytes.count)
        for page in dirty { copy(page) }
        dirty = []
    }

    fileprivate mutating func cutPower(_ coins: inout SeededSequence?) {
        for page in dirty.sorted() where coins?.coin() ?? false {
            let end = min((page + 1) * MemoryDisk.pageSize, bytes.count)
            Self.grow(&durable, to: end)
            copy(page)
        }
        bytes = durable
        dirty = []
        openCount = 0
        locks = [:]
    }

    /// Takes one page over to the durable bytes, as far as both have it.
    private mutating func copy(_ page: Int) {
        let start = page * MemoryDisk.pageSize
        let end = min(start + MemoryDisk.pageSize, bytes.count, durable.count)
        guard start < end else { return }
        durable.withUnsafeMutableBytes { target in
            bytes.withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(rebasing: target[start..<end])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[start..<end]))
            }
        }
    }

    private static func grow(_ bytes: inout [UInt8], to count: Int) {
        if bytes.count < count { bytes += [UInt8](repeating: 0, count: count - bytes.count) }
    }

    private mutating func markDirty(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        for page in range.lowerBound / MemoryDisk.pageSize...(range.upperBound - 1) / MemoryDisk.pageSize {
            dirty.insert(page)
        }
    }

    // MARK: Locks

    /// Raises the lock of a handle; false when another one is in the way.
    mutating func lock(_ handle: Int, _ level: Int32) -> Bool {
        let others = locks.filter { $0.key != handle }.values
        let allowed =
            switch level {
            case LockLevel.shared: !others.contains { $0 >= LockLevel.pending }
            case LockLevel.reserved: !others.contains { $0 >= LockLevel.reserved }
            default: others.isEmpty
            }
        if allowed { locks[handle] = max(level, locks[handle] ?? 0) }
        return allowed
    }

    mutating func unlock(_ handle: Int, _ level: Int32) {
        locks[handle] = level == LockLevel.none ? nil : level
    }
}

/// SQLite's lock levels.
enum LockLevel {
    static let none: Int32 = 0
    static let shared: Int32 = 1
    static let reserved: Int32 = 2
    static let pending: Int32 = 3
}
