// The folder in which a bundle is put together before anything of the device knows of it.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

/// An open directory that several owners may hold.
final class OpenDirectory {
    let descriptor: Descriptor
    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

/// Makes folders, files and links below one new directory and never outside it.
///
/// Names are checked by the caller; everything is opened beneath descriptors all the same, so that a link made by
/// somebody else in the meantime leads nowhere.
final class StagingFolder {
    private static let folderMode: mode_t = 0o755
    private static let fileMode: mode_t = 0o644
    private static let programMode: mode_t = 0o755
    private static let stagingMode: mode_t = 0o700

    let path: String
    /// What is staged, for people.
    private let source: String
    private let parent: OpenDirectory
    private let name: String
    private let folder: OpenDirectory
    private let limits: StagingLimits
    /// The directory that was used last: archives list a folder's files one after the other.
    private var recent: (path: ArraySlice<String>, directory: OpenDirectory)?
    /// Files, folders and links made so far.
    private(set) var entryCount = 0

    /// Makes `path` below `root` with its missing parents; what a killed process left there is removed first.
    init(
        root: borrowing Descriptor, path: String, source: String, limits: StagingLimits
    ) throws(AssetsError) {
        let components = try EntryPath.forStaging(path).components
        self.path = path
        self.source = source
        self.limits = limits
        name = components[components.count - 1]
        var directory = try writing(path) { () throws(SystemCallError) in
            OpenDirectory(try root.open(beneath: ".", flags: O_RDONLY | O_DIRECTORY))
        }
        for component in components.dropLast() {
            directory = try writing(path) { () throws(SystemCallError) in
                try Self.makeDirectory(component, in: directory, mode: Self.stagingMode, mayExist: true)
                return try Self.openDirectory(component, in: directory)
            }
        }
        parent = directory
        let name = name
        folder = try writing(path) { () throws(SystemCallError) in
            try removeTree(name, in: directory.descriptor)
            try Self.makeDirectory(name, in: directory, mode: Self.stagingMode, mayExist: false)
            return try Self.openDirectory(name, in: directory)
        }
    }

    // MARK: Making

    /// Makes a folder and its missing parents.
    func makeFolder(_ entry: EntryPath) throws(AssetsError) {
        _ = try directory(entry.components[...])
    }

    /// Makes an empty file that must be new, open for writing.
    func makeFile(_ entry: EntryPath, isProgram: Bool) throws(AssetsError) -> Descriptor {
        let directory = try directory(entry.parent)
        try count()
        let mode = isProgram ? Self.programMode : Self.fileMode
        do throws(SystemCallError) {
            let file = try directory.descriptor.open(
                beneath: entry.name, flags: O_WRONLY | O_CREAT | O_EXCL, mode: UInt64(mode))
            let fd = file.rawValue
            // As with folders, the process's mask has no say.
            try check("fchmod") { fchmod(fd, mode) }
            return file
        } catch {
            throw failure(error, entry.text)
        }
    }

    /// Makes a symbolic link that must be new.
    func makeLink(_ entry: EntryPath, target: String) throws(AssetsError) {
        let directory = try directory(entry.parent)
        try count()
        do throws(SystemCallError) {
            let fd = directory.descriptor.rawValue
            try check("symlinkat") { symlinkat(target, fd, entry.name) }
        } catch {
            throw failure(error, entry.text)
        }
    }

    /// Opens a file that was made before, for reading; nil when there is none.
    func openFile(_ entry: EntryPath) -> Descriptor? {
        guard
            let file = try? folder.descriptor.open(
                beneath: entry.text, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        else { return nil }
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return file
    }

    /// Opens the bundle's folder itself.
    func openBundle(_ name: String) throws(AssetsError) -> Descriptor {
        let folder = folder
        return try writing(path) { () throws(SystemCallError) in
            try folder.descriptor.open(beneath: name, flags: O_RDONLY | O_DIRECTORY)
        }
    }

    // MARK: Ending

    /// Puts everything on stable storage, with one call: of 5000 small files each on its own takes seven times as long.
    ///
    /// The kernel reports failed writes since the descriptor was opened, which was before the first write.
    func sync() throws(AssetsError) {
        let folder = folder
        try writing(path) { () throws(SystemCallError) in try folder.descriptor.syncFileSystem() }
    }

    /// Removes everything; what cannot be removed is left to the next start of the service.
    func remove() {
        recent = nil
        try? removeTree(name, in: parent.descriptor)
    }

    // MARK: Directories

    private func directory(_ components: ArraySlice<String>) throws(AssetsError) -> OpenDirectory {
        if let recent, recent.path == components { return recent.directory }
        var directory = folder
        for component in components {
            let parent = directory
            let isNew: Bool
            do throws(SystemCallError) {
                isNew = try Self.makeDirectory(component, in: parent, mode: Self.folderMode, mayExist: true)
                directory = try Self.openDirectory(component, in: parent)
            } catch {
                throw failure(error, components.joined(separator: "/"))
            }
            if isNew { try count() }
        }
        recent = (components, directory)
        return directory
    }

    private func count() throws(AssetsError) {
        entryCount += 1
        guard entryCount <= limits.entriesMax else {
            throw .hostile(source, "it holds more than \(limits.entriesMax) files and folders")
        }
    }

    private func failure(_ error: SystemCallError, _ entry: String) -> AssetsError {
        switch error.number {
        case EEXIST, ENOTDIR, ELOOP, EISDIR:
            .hostile(source, "\(printable(entry.utf8)) is there twice")
        case ENAMETOOLONG: .hostile(source, "\(printable(entry.utf8)) is too long")
        default: .writing(printable(entry.utf8), error)
        }
    }

    /// Returns whether it was made.
    @discardableResult
    private static func makeDirectory(
        _ name: String, in parent: OpenDirectory, mode: mode_t, mayExist: Bool
    ) throws(SystemCallError) -> Bool {
        let fd = parent.descriptor.rawValue
        do throws(SystemCallError) {
            try check("mkdirat") { mkdirat(fd, name, mode) }
            // The process's mask must not decide what other users of a kiosk's device may run.
            try check("fchmodat") { fchmodat(fd, name, mode, 0) }
            return true
        } catch {
            if mayExist && error.number == EEXIST { return false }
            throw error
        }
    }

    private static func openDirectory(_ name: String, in parent: OpenDirectory) throws(SystemCallError)
        -> OpenDirectory
    {
        OpenDirectory(try parent.descriptor.open(beneath: name, flags: O_RDONLY | O_DIRECTORY))
    }
}

extension EntryPath {
    /// The path that the service chose for staging.
    fileprivate static func forStaging(_ path: String) throws(AssetsError) -> EntryPath {
        do throws(Fault) { return try EntryPath(bytes: Array(path.utf8), limits: StagingLimits()) } catch {
            throw AssetsError(.internal, "The staging path \(printable(path.utf8)) \(error.explanation)")
        }
    }
}

/// Removes a name with everything below it; links are removed, not followed. Nothing there is no error.
func removeTree(_ name: String, in directory: borrowing Descriptor) throws(SystemCallError) {
    try removeTree(name.utf8.map { CChar(bitPattern: $0) } + [0], in: directory, depth: 0)
}

private func removeTree(_ name: [CChar], in directory: borrowing Descriptor, depth: Int) throws(SystemCallError) {
    /// Deeper than anything that is staged; each level holds one descriptor.
    let depthMax = 100
    guard let status = try statusOf(name, in: directory) else { return }
    let fd = directory.rawValue
    guard status.st_mode & S_IFMT == S_IFDIR else {
        try check("unlinkat") { unlinkat(fd, name, 0) }
        return
    }
    guard depth < depthMax else { throw SystemCallError(call: "unlinkat", number: ELOOP) }
    let childFD = try check("openat") { openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    let child = Descriptor(owning: childFD)
    for entry in try namesInDirectory(child, limit: .max) { try removeTree(entry, in: child, depth: depth + 1) }
    try check("unlinkat") { unlinkat(fd, name, AT_REMOVEDIR) }
}
