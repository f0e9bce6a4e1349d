// In which folder a finished file waits for its receiver.

/// The folders that finished files are handed over in. Files of different names share one: each folder costs the disk as
/// much as a file.
package struct VendedFolders: Sendable {
    private struct Folder {
        var names: Set<String> = []
        /// Files that are on their way there, or wait there.
        var open = 0
    }

    private var folders: [String: Folder] = [:]
    /// The folder of each group that takes more files.
    private var current: [String: String] = [:]

    package init() {}

    /// The folder for a file: that of other files, or a new one below the folder `parent`.
    ///
    /// - Parameter newName: Names the new one, and must never have named another: in the folders of earlier processes files
    ///   may wait, which nothing here knows of.
    package mutating func folder(for name: String, below parent: String, newName: () -> String) -> String {
        var path = current[parent] ?? ""
        if !hasRoom(for: name, in: path) { path = "\(parent)/\(newName())" }
        current[parent] = path
        folders[path, default: Folder()].names.insert(name)
        folders[path]?.open += 1
        return path
    }

    private func hasRoom(for name: String, in path: String) -> Bool {
        guard let names = folders[path]?.names else { return false }
        return !names.contains(name) && names.count < PolicyNumbers.vendedFilesMax
    }

    /// True while a file is in that folder, or on its way there, as far as this process knows.
    package func isOpen(_ path: String) -> Bool { folders[path] != nil }

    /// A file in that folder has no receiver any more, wherever it is now.
    package mutating func end(_ path: String) {
        // Folders of an earlier process are not known.
        guard let folder = folders[path] else { return }
        guard folder.open <= 1 else {
            folders[path]?.open -= 1
            return
        }
        folders[path] = nil
        for parent in current.keys.sorted() where current[parent] == path { current[parent] = nil }
    }
}
