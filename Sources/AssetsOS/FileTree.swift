// The seam for files: one device directory, on a disk or in a simulation's memory.

/// What a name in the tree leads to. Links are never followed.
package struct FileStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable { case file, directory, link, other }
    package var kind: Kind
    package var inode: UInt64
    /// Bytes.
    package var size: Int64
    package init(kind: Kind, inode: UInt64, size: Int64) {
        self.kind = kind
        self.inode = inode
        self.size = size
    }
}

/// A file that only grows: the bytes of an unfinished download. Its length is the progress.
///
/// Used by one executor at a time, but for `sync`, which may run on another.
package protocol AppendableFile: AnyObject, Sendable {
    /// Bytes in the file.
    var length: Int64 { get }
    var inode: UInt64 { get }
    /// Adds all bytes at the end, or throws and leaves `length` at what was written.
    func append(_ bytes: UnsafeRawBufferPointer) throws(SystemCallError)
    /// Cuts the file back.
    func truncate(to length: Int64) throws(SystemCallError)
    /// Reserves room up to `total` bytes without changing the length; does nothing where the file system cannot.
    func reserve(total: Int64) throws(SystemCallError)
    /// Puts the bytes on stable storage. Blocks.
    func sync() throws(SystemCallError)
    /// All bytes from `offset` on, in pieces, for a digest that has to start again.
    func read(from offset: Int64, _ body: (UnsafeRawBufferPointer) -> Void) throws(SystemCallError)
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
    /// A whole small file; throws EFBIG beyond `limit` bytes.
    func read(_ path: String, limit: Int) throws(SystemCallError) -> [UInt8]
    /// Writes a file that is there whole or not at all: temporary name, sync, rename, directory sync.
    func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(SystemCallError)
    /// Moves within the tree, over an existing file. `exclusively` fails with EEXIST instead.
    func rename(_ from: String, to: String, exclusively: Bool) throws(SystemCallError)
    /// Puts a directory's names on stable storage.
    func syncDirectory(_ path: String) throws(SystemCallError)
    /// Removes a file or a whole directory; nothing there is no error. Links are removed, not followed.
    func remove(_ path: String) throws(SystemCallError)
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
