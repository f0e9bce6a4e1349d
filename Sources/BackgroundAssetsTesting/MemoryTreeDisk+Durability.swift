// What a memory tree makes durable, and what a power cut leaves of the rest.
internal import AssetsOS

extension MemoryTreeDisk {
    mutating func syncDirectory(_ path: String) throws(SystemCallError) { syncNames(of: try directory(at: path)) }

    /// Makes durable what concerns a directory, with every earlier change of the same names.
    mutating func syncNames(of directory: UInt64) {
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

    mutating func commit(_ chosen: [Bool]) {
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
    mutating func sweep() {
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
        powerCuts += 1
        fault = nil
    }

    mutating func endProcess() {
        for inode in nodes.keys.sorted() {
            guard case .file(let file) = nodes[inode], file.openCount > 0 else { continue }
            withFile(inode) { $0.openCount = 0 }
            forgetSpace(of: inode)
        }
        life += 1
        fault = nil
    }

    /// Lets some changes of names through; a change needs every earlier one of the same names.
    mutating func surviveByChance(_ coins: inout SeededSequence?) {
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

    func reach(_ inode: UInt64, _ reached: inout [UInt64]) {
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
