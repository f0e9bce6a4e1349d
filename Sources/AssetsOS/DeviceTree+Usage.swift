// How much folders hold that others have filled: any names, any modes, links never followed.
internal import Glibc

extension DeviceTree {
    /// Folders in folders that are looked into; each has a descriptor meanwhile.
    private static let usageDepthMax = 64

    package func usage(of path: String, filesMax: Int64) throws(SystemCallError) -> FolderUsage {
        var usage = FolderUsage()
        do throws(SystemCallError) {
            try withParent(of: path) { (parent, name) throws(SystemCallError) in
                try Self.add(FileName(name), in: parent, depth: 0, filesMax: filesMax, to: &usage)
            }
        } catch let error where error.number == ENOENT || error.number == ENOTDIR {
            return usage
        }
        return usage
    }

    private static func add(
        _ name: FileName, in parent: Int32, depth: Int, filesMax: Int64, to usage: inout FolderUsage
    ) throws(SystemCallError) {
        guard usage.files <= filesMax else {
            usage.isComplete = false
            return
        }
        var status = stat()
        do throws(SystemCallError) {
            try check("fstatat") { name.with { fstatat(parent, $0, &status, AT_SYMLINK_NOFOLLOW) } }
        } catch let error where error.number == ENOENT {
            // Removed meanwhile.
            return
        }
        usage.files += 1
        usage.bytes += Int64(status.st_blocks) * 512
        guard status.st_mode & S_IFMT == S_IFDIR else { return }
        guard depth < usageDepthMax else {
            usage.isComplete = false
            return
        }
        do throws(SystemCallError) {
            let names = try DirectoryReader.names(in: openFolder(name, in: parent), limit: Int(filesMax) + 1)
            let folder = try openFolder(name, in: parent)
            for entry in names {
                try add(FileName(entry), in: folder.rawValue, depth: depth + 1, filesMax: filesMax, to: &usage)
            }
        } catch let error where error.number == ENOENT {
            return
        }
    }
}
