// Which file locks a process holds: stopped with one, it would stop everybody who wants it.
internal import AssetsOS
internal import Glibc

/// The locks of one process, as the kernel shows them.
package enum FileLocks {
    /// Bytes of the list of all locks of the machine that are read; what is beyond counts as nothing.
    private static let listMax = 1 << 20
    private static let infoMax = 4096
    /// Where the path of a file with a lock is not known.
    private static let unknown = "a file that it has mapped"

    /// The path of a file below `folder` that the process has locked, or nil. Files for which `isExempt` answers true are
    /// passed over.
    ///
    /// The list of all locks tells nobody's name of open-file-description locks, and no paths; the process's own descriptors
    /// have both. Only a lock whose descriptor was closed while the file is mapped is in the list alone.
    package static func held(
        by process: Int32, below folder: String, isExempt: (_ path: String) -> Bool
    ) -> String? {
        var seen: Set<String> = []
        for name in DirectoryNames.list("/proc/\(process)/fdinfo") {
            let files = locks(inInfo: read("/proc/\(process)/fdinfo/\(name)", limit: infoMax))
            guard !files.isEmpty else { continue }
            seen.formUnion(files)
            let path = link("/proc/\(process)/fd/\(name)")
            if path.hasPrefix(folder + "/"), !isExempt(path) { return path }
        }
        let listed = locks(of: process, inList: read("/proc/locks", limit: listMax))
        return listed.contains { !seen.contains($0) } ? unknown : nil
    }

    /// Files (device and inode) with a lock through one descriptor: lines "lock:\t1: FLOCK  ADVISORY  WRITE 123 08:01:7 0 EOF".
    static func locks(inInfo text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix("lock:") }.compactMap { file(inLock: $0.dropFirst(5)) }
    }

    /// The same of a process in the list of all locks, which also has those who wait.
    static func locks(of process: Int32, inList text: String) -> [String] {
        text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] != "->", words[4] == "\(process)" else { return nil }
            return file(inLock: line)
        }
    }

    private static func file(inLock line: Substring) -> String? {
        let words = line.split { $0 == " " || $0 == "\t" }
        return words.count >= 6 && words[1] != "->" ? String(words[5]) : nil
    }

    private static func read(_ path: String, limit: Int) -> String {
        let raw = open(path, O_RDONLY | O_CLOEXEC)
        guard raw >= 0 else { return "" }
        defer { close(raw) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count < limit {
            let count = Glibc.read(raw, &chunk, chunk.count)
            guard count > 0 else { break }
            bytes += chunk.prefix(count)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func link(_ path: String) -> String {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
}

/// Names in a folder of /proc.
private enum DirectoryNames {
    static func list(_ path: String) -> [String] {
        guard let stream = opendir(path) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
