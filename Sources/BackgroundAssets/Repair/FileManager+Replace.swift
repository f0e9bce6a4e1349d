// Replacing one file by another. Foundation's own method loses the new file on Linux.

public import Foundation

extension FileManager {
    /// Replaces an item by another without a moment at which neither is there.
    ///
    /// The new item takes the name and, for files, the permissions of the original. Where there is no original it is just
    /// moved. An item on another file system is copied beside the original first. If anything fails the original stays as it
    /// was.
    ///
    /// - Parameters:
    ///   - originalItemURL: The item to replace; it need not exist.
    ///   - newItemURL: The item that takes its place.
    /// - Returns: Where the new item is now: `originalItemURL`.
    /// - Throws: A `CocoaError` that names the file.
    @discardableResult
    public func replaceItemAt(_ originalItemURL: URL, withItemAt newItemURL: URL) throws -> URL? {
        try Replacement(original: originalItemURL, new: newItemURL, files: self, backupName: nil, options: []).perform()
        return originalItemURL
    }
}

/// One replacement.
struct Replacement {
    let original: URL
    let new: URL
    let files: FileManager
    /// The name under which the original stays beside the new item until it is in place, or for good.
    let backupName: String?
    let options: FileManager.ItemReplacementOptions

    private enum Kind { case file, directory }

    func perform() throws {
        guard let kind = kind(of: new) else {
            throw CocoaError(.fileNoSuchFile, userInfo: [NSFilePathErrorKey: new.path])
        }
        if isSame() { return }
        let originalKind = self.kind(of: original)
        let backup = try originalKind.flatMap { try keepBackup($0) }
        switch originalKind {
        case .file? where kind == .file:
            if !options.contains(.usingNewMetadataOnly), let mode = permissions(of: original) {
                setPermissions(mode, of: new)
            }
            try move(new)
        case nil:
            try move(new)
        case .file?, .directory?:
            try exchange()
        }
        if let backup, !options.contains(.withoutDeletingBackupItem) { try? files.removeItem(at: backup) }
    }

    /// Gives the original a second name, in the place of what has it; a directory cannot have two and is copied.
    private func keepBackup(_ kind: Kind) throws -> URL? {
        guard let backupName, !backupName.isEmpty else { return nil }
        guard !backupName.contains("/"), backupName != ".", backupName != "..",
            backupName != original.lastPathComponent, backupName.utf8.count <= Int(NAME_MAX)
        else { throw CocoaError(.fileWriteInvalidFileName, userInfo: [NSFilePathErrorKey: backupName]) }
        let backup = original.deletingLastPathComponent().appendingPathComponent(backupName)
        if backup.path == new.path {
            throw CocoaError(.fileWriteFileExists, userInfo: [NSFilePathErrorKey: backup.path])
        }
        if self.kind(of: backup) != nil { try files.removeItem(at: backup) }
        if kind == .file {
            // A file system without links has to copy.
            if link(original.path, backup.path) == 0 { return backup }
        }
        try files.copyItem(at: original, to: backup)
        return backup
    }

    /// Moves an item to the original's name; over a file that is there.
    private func move(_ item: URL) throws {
        if rename(item.path, original.path) == 0 { return }
        guard errno == EXDEV else { throw failure(errno) }
        let copy = neighbour()
        do {
            try files.copyItem(at: item, to: copy)
            try synchronize(copy)
        } catch {
            try? files.removeItem(at: copy)
            throw error
        }
        guard rename(copy.path, original.path) == 0 else {
            let number = errno
            try? files.removeItem(at: copy)
            throw failure(number)
        }
        try? files.removeItem(at: item)
    }

    /// Replaces where a rename cannot: a directory is part of it.
    private func exchange() throws {
        let aside = neighbour()
        guard rename(original.path, aside.path) == 0 else { throw failure(errno) }
        do {
            try move(new)
        } catch {
            _ = rename(aside.path, original.path)
            throw error
        }
        try? files.removeItem(at: aside)
    }

    /// A new name in the original's folder.
    private func neighbour() -> URL {
        original.deletingLastPathComponent().appendingPathComponent(".\(UUID().uuidString).replacement")
    }

    /// Puts a copied file on stable storage before it takes a name that was good.
    private func synchronize(_ copy: URL) throws {
        guard kind(of: copy) == .file else { return }
        let descriptor = open(copy.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(errno) }
    }

    /// Links count as files: they are replaced, not followed.
    private func kind(of url: URL) -> Kind? {
        status(of: url).map { $0.st_mode & S_IFMT == S_IFDIR ? .directory : .file }
    }

    private func permissions(of url: URL) -> mode_t? {
        status(of: url).flatMap { $0.st_mode & S_IFMT == S_IFREG ? $0.st_mode & 0o7777 : nil }
    }

    private func setPermissions(_ mode: mode_t, of url: URL) {
        // An item of another user keeps its own.
        if permissions(of: url) != nil { _ = chmod(url.path, mode) }
    }

    private func isSame() -> Bool {
        guard let first = status(of: original), let second = status(of: new) else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino && original.path == new.path
    }

    private func status(of url: URL) -> stat? {
        var status = stat()
        return lstat(url.path, &status) == 0 ? status : nil
    }

    private func failure(_ number: Int32) -> any Error {
        let code: CocoaError.Code =
            switch number {
            case ENOENT: .fileNoSuchFile
            case EACCES, EPERM: .fileWriteNoPermission
            case ENOSPC, EDQUOT: .fileWriteOutOfSpace
            case EROFS: .fileWriteVolumeReadOnly
            default: .fileWriteUnknown
            }
        let cause = NSError(domain: NSPOSIXErrorDomain, code: Int(number))
        return CocoaError(code, userInfo: [NSFilePathErrorKey: original.path, NSUnderlyingErrorKey: cause])
    }
}
