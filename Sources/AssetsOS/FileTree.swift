// The seam for files: one device directory, on a disk or in a simulation's memory.

/// What a name in the tree leads to. Links are never followed.
package struct FileStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable { case file, directory, link, other }
    package var kind: Kind
    package var inode: UInt64
    /// Bytes.
    package var size: Int64
    /// Bytes that it has of the file system.
    package var allocated: Int64
    package init(kind: Kind, inode: UInt64, size: Int64, allocated: Int64 = 0) {
        self.kind = kind
        self.inode = inode
        self.size = size
        self.allocated = allocated
    }
}

/// What a folder holds, with everything below it.
package struct FolderUsage: Hashable, Sendable {
    /// Bytes that it has of the file system.
    package var bytes: Int64 = 0
    /// Files, folders and links.
    package var files: Int64 = 0
    /// False where it holds more than was to be counted, or folders too deep to be looked into.
    package var isComplete = true

    package init() {}

    package static func += (left: inout FolderUsage, right: FolderUsage) {
        let (sum, isTooMuch) = left.bytes.addingReportingOverflow(right.bytes)
        left.bytes = isTooMuch ? .max : sum
        left.files += right.files
        left.isComplete = left.isComplete && right.isComplete
    }
}

/// A name in one folder and the name it gets in another one.
package struct Renaming: Hashable, Sendable {
    package var from: String
    package var to: String
    package init(from: String, to: String) {
        self.from = from
        self.to = to
    }
}

/// A file that only grows: the bytes of an unfinished download. Its length is the progress.
///
/// Used by one executor at a time, but for `sync` and `read`, which may run on others.
package protocol AppendableFile: AnyObject, Sendable {
    /// Bytes in the file.
    var length: Int64 { get }
    var inode: UInt64 { get }
    /// Bytes that it has of the file system, those set aside too.
    var allocated: Int64 { get throws(SystemCallError) }
    /// Adds all bytes at the end, or throws and leaves `length` at what was written.
    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError)
    /// Cuts the file back.
    func truncate(to length: Int64) throws(SystemCallError)
    /// Sets room up to `total` bytes aside without changing the length; false where the file system cannot do that.
    @discardableResult
    func reserve(total: Int64) throws(SystemCallError) -> Bool
    /// Has the disk begin to write the bytes, for a `sync` that comes soon. Does not wait for it.
    func beginSync()
    /// Puts the bytes on stable storage. Blocks.
    func sync() throws(SystemCallError)
    /// Sets an extended attribute (`user.` names); ENOTSUP where the file system has none.
    func setAttribute(name: String, value: String) throws(SystemCallError)
    /// So many bytes from `offset` on, or all there are, in pieces: for a digest of what an earlier process wrote. Bytes
    /// that are being appended meanwhile are not among them.
    func read(
        from offset: Int64, count: Int64, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(SystemCallError)
}

/// Files below one directory. Paths are relative, never empty, without `..`; nothing outside can be reached.
///
/// Every call blocks: not for the service's own loop, but for `status`, which is short.
package protocol FileTree: Sendable {
    /// Where the tree is, for messages and for other processes.
    var root: String { get }
    /// Makes a directory and its missing parents, mode 0700.
    func makeDirectory(_ path: String) throws(SystemCallError)
    /// Opens a file for appending; makes it, mode 0600, when missing.
    func openAppendable(_ path: String) throws(SystemCallError) -> any AppendableFile
    /// nil when there is no such name.
    func status(_ path: String) throws(SystemCallError) -> FileStatus?
    /// Names in a directory, sorted by their bytes.
    func list(_ path: String) throws(SystemCallError) -> [String]
    /// What a folder holds, up to so many files; nothing where there is none.
    func usage(of path: String, filesMax: Int64) throws(SystemCallError) -> FolderUsage
    /// A whole small file; throws EFBIG beyond `limit` bytes.
    func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8]
    /// Writes a file that is there whole or not at all: temporary name, sync, rename, directory sync.
    func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(SystemCallError)
    /// Moves within the tree, over an existing file. `exclusively` fails with EEXIST instead.
    func rename(_ from: String, to: String, exclusively: Bool) throws(SystemCallError)
    /// Moves files from one folder to another, each over an existing file. Answers for each why it did not move: one that
    /// cannot does not keep the others.
    func moveFiles(_ names: [Renaming], from: String, to: String) throws(SystemCallError) -> [SystemCallError?]
    /// The inodes that names in a folder lead to; nil for a name that is not there.
    func inodes(of names: [String], in folder: String) throws(SystemCallError) -> [UInt64?]
    /// Puts a directory's names on stable storage.
    func syncDirectory(_ path: String) throws(SystemCallError)
    /// Removes a file or a whole directory; nothing there is no error. Links are removed, not followed.
    func remove(_ path: String) throws(SystemCallError)
    /// Removes a directory if nothing is in it; true when there is none any more.
    func removeEmptyDirectory(_ path: String) throws(SystemCallError) -> Bool
    /// Makes `path` a link to `target`, replacing a link of that name at once.
    func replaceLink(_ path: String, target: String) throws(SystemCallError)
    func readLink(_ path: String) throws(SystemCallError) -> String
    /// Sets an extended attribute (`user.` names); ENOTSUP where the file system has none.
    func setAttribute(_ path: String, name: String, value: String) throws(SystemCallError)
    func attribute(_ path: String, name: String) throws(SystemCallError) -> String?
    /// Takes the right to write a file from everybody, its owner too.
    func makeReadOnly(_ path: String) throws(SystemCallError)
    /// Bytes an ordinary user may still write, and the size of the file system.
    func space() throws(SystemCallError) -> (free: Int64, total: Int64)
    /// Changes whenever bytes that were not synced may be gone: boot id and mount id.
    func storageEpoch() throws(SystemCallError) -> String
}

extension FileTree {
    /// Makes a directory and its missing parents, and puts all their names on stable storage.
    ///
    /// Also those of directories that were there: who made them may have been killed before it synced.
    package func makeDurableDirectory(_ path: String) throws(SystemCallError) {
        try makeDirectory(path)
        var parent = "."
        for name in path.split(separator: "/") {
            try syncDirectory(parent)
            parent = parent == "." ? String(name) : "\(parent)/\(name)"
        }
    }
}
