// What the disk does for finished files, for many of them at a time: a folder is synced once for all of its files.
internal import AssetsModel
internal import AssetsOS

/// Extended attribute on every file that was downloaded, with the download's id: once it was handed out, the system may
/// remove it when space runs low. It is there from the file's first byte on.
let purgeableAttribute = "user.backgroundassets.purgeable"

/// A finished file on its way from its partial name to its place.
struct FileMove: Sendable {
    var partial: String
    var intent: FinishIntent
    var isReadOnly: Bool
    /// An earlier try, or an earlier process, may have moved it already.
    var mayBeDone: Bool
}

/// A question about a file that its receiver may have moved away.
struct FileLook: Sendable {
    var target: String
    var inode: UInt64
    /// No other file is in its folder, or comes there.
    var isLast: Bool
}

extension AssetsService {
    /// Moves files to their places; answers for each why it could not.
    func move(_ moves: [FileMove]) async -> [SystemCallError?] {
        let files = seams.files
        return await seams.disk.run { moveIntoPlace(files, moves) }
    }

    /// Whether files are still where they were handed over. A file that was moved is not to come back into a folder that
    /// is going to be removed.
    func look(_ looks: [FileLook]) async -> [Bool] {
        let files = seams.files
        return await seams.disk.run { areLeft(files, looks) }
    }
}

/// Renames partial files over and syncs every directory whose names changed. Does nothing that was done already.
func moveIntoPlace(_ files: any FileTree, _ moves: [FileMove]) -> [SystemCallError?] {
    var failures: [SystemCallError?] = Array(repeating: nil, count: moves.count)
    let sources = inOrder(Array(moves.indices)) { moves[$0].partial.parentPath }
    for (source, indices) in sources {
        for (folder, indices) in inOrder(indices, { moves[$0].intent.target.parentPath }) {
            moveTogether(files, moves, indices, from: source, to: folder, &failures)
        }
        // Last, and once for all folders: the files are gone from here.
        do throws(SystemCallError) { try files.syncDirectory(source) } catch {
            for index in indices where failures[index] == nil { failures[index] = error }
        }
    }
    return failures
}

/// Moves files of one folder to one other, or to other names in the same.
private func moveTogether(
    _ files: any FileTree, _ moves: [FileMove], _ indices: [Int], from source: String, to folder: String,
    _ failures: inout [SystemCallError?]
) {
    do throws(SystemCallError) {
        if folder != source {
            // First the folder's own name: a file whose move is durable must not be in a folder that is not. Also when the
            // file is there: who moved it may have been killed before it synced.
            try files.makeDirectory(folder)
            try files.syncDirectory(folder.parentPath)
        }
        var open: [Int] = []
        for index in indices where try !isDone(files, moves[index]) { open.append(index) }
        let names = open.map {
            Renaming(from: moves[$0].partial.lastPathPart, to: moves[$0].intent.target.lastPathPart)
        }
        if !open.isEmpty {
            for (index, failure) in zip(open, try files.moveFiles(names, from: source, to: folder)) {
                failures[index] = failure
            }
        }
        for index in indices where moves[index].isReadOnly && failures[index] == nil {
            try files.makeReadOnly(moves[index].intent.target)
        }
        if folder != source { try files.syncDirectory(folder) }
    } catch {
        for index in indices where failures[index] == nil { failures[index] = error }
    }
}

private func isDone(_ files: any FileTree, _ move: FileMove) throws(SystemCallError) -> Bool {
    guard move.mayBeDone else { return false }
    return try files.status(move.intent.target)?.inode == move.intent.inode
}

/// Looks whether files are where they were; a file that cannot be looked at counts as left.
private func areLeft(_ files: any FileTree, _ looks: [FileLook]) -> [Bool] {
    var answers = Array(repeating: true, count: looks.count)
    for (folder, indices) in inOrder(Array(looks.indices), { looks[$0].target.parentPath }) {
        do throws(SystemCallError) {
            let found = try files.inodes(of: indices.map { looks[$0].target.lastPathPart }, in: folder)
            for (index, inode) in zip(indices, found) { answers[index] = inode == looks[index].inode }
            guard indices.contains(where: { !answers[$0] }), try files.status(folder) != nil else { continue }
            try files.syncDirectory(folder)
            guard indices.contains(where: { looks[$0].isLast }), try files.removeEmptyDirectory(folder) else {
                continue
            }
            try files.syncDirectory(folder.parentPath)
        } catch {
            for index in indices { answers[index] = true }
        }
    }
    return answers
}

/// The elements that have a key in common, in the order in which the keys first came.
private func inOrder(_ indices: [Int], _ key: (Int) -> String) -> [(String, [Int])] {
    var groups: [(String, [Int])] = []
    var places: [String: Int] = [:]
    for index in indices {
        let name = key(index)
        if let place = places[name] {
            groups[place].1.append(index)
        } else {
            places[name] = groups.count
            groups.append((name, [index]))
        }
    }
    return groups
}
