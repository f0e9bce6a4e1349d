// What copying and serving whole folders needs of descriptors.
internal import CLinux
internal import Glibc

extension Descriptor {
    /// Opens `path` below this directory; follows links as long as no step of them leaves it.
    package borrowing func open(inside path: String, flags: Int32) throws(SystemCallError) -> Descriptor {
        let directory = rawValue
        return Descriptor(
            owning: try check("openat2") {
                clinux_openat2(directory, path, UInt64(flags | O_CLOEXEC), 0, 0x08 | 0x02)
            })
    }

    /// Copies up to `count` bytes to where `target` stands, sharing blocks where the file system can; 0 at the end.
    package borrowing func copy(to target: borrowing Descriptor, count: Int) throws(SystemCallError) -> Int {
        let from = rawValue
        let to = target.rawValue
        return try check("copy_file_range") { clinux_copy_file_range(from, to, count) }
    }

    /// Puts everything of the file system that holds this file on stable storage. Blocks.
    package borrowing func syncFileSystem() throws(SystemCallError) {
        let fd = rawValue
        try check("syncfs") { clinux_syncfs(fd) }
    }
}
