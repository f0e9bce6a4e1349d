// Staging from a folder.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

extension Staging {
    /// Bytes copied between two looks at cancellation.
    private static let stepMax = 16 << 20

    private struct Tree {
        var files: [(entry: EntryPath, size: Int64)] = []
        var folders: [EntryPath] = []
        var links: [(entry: EntryPath, target: [UInt8])] = []
        var bytes: Int64 = 0
        var count: Int { files.count + folders.count + links.count }
    }

    /// Copies the folder `source` as `name`; returns `name`.
    mutating func copy(_ source: borrowing Descriptor, name: String) throws(AssetsError) -> String {
        let top = try path(Array(name.utf8))
        var tree = Tree()
        tree.folders.append(top)
        try survey(source, at: name, into: &tree)
        var done: Int64 = 0
        for entry in tree.folders { try folder.makeFolder(entry) }
        for (entry, _) in tree.files { try copyFile(entry, from: source, done: &done, total: tree.bytes) }
        try makeLinks(tree.links, bundle: name)
        report(tree.bytes, of: tree.bytes)
        return name
    }

    /// Lists everything first: the total is known for progress, and what is refused is refused before it costs time.
    private func survey(
        _ directory: borrowing Descriptor, at path: String, into tree: inout Tree
    ) throws(AssetsError) {
        try checkCancelled()
        let room = limits.entriesMax
        let names = try reading(path, { () throws(SystemCallError) in try namesInDirectory(directory, limit: room) })
        for name in names {
            let bytes = name.dropLast().map { UInt8(bitPattern: $0) }
            let entry = try self.path(Array(path.utf8) + [UInt8(ascii: "/")] + bytes)
            guard tree.count < limits.entriesMax else {
                throw hostile("it holds more than \(limits.entriesMax) files and folders")
            }
            guard
                let status = try reading(
                    entry.text, { () throws(SystemCallError) in try statusOf(name, in: directory) })
            else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                tree.folders.append(entry)
                let child = try reading(entry.text) { () throws(SystemCallError) in
                    try directory.open(beneath: entry.name, flags: O_RDONLY | O_DIRECTORY)
                }
                try survey(child, at: entry.text, into: &tree)
            case S_IFREG:
                tree.files.append((entry, Int64(status.st_size)))
                tree.bytes += Int64(status.st_size)
            case S_IFLNK:
                let limit = limits.pathLengthMax
                let target = try reading(entry.text) { () throws(SystemCallError) in
                    try linkTarget(of: name, in: directory, limit: limit)
                }
                tree.links.append((entry, target))
            default:
                throw hostile("\(printable(entry.text.utf8)) is neither a file, a folder nor a link")
            }
        }
    }

    private mutating func copyFile(
        _ entry: EntryPath, from source: borrowing Descriptor, done: inout Int64, total: Int64
    ) throws(AssetsError) {
        let inside = entry.components.dropFirst().joined(separator: "/")
        let input = try reading(entry.text) { () throws(SystemCallError) in
            try source.open(beneath: inside, flags: O_RDONLY | O_NONBLOCK)
        }
        var status = stat()
        let fd = input.rawValue
        _ = try reading(entry.text) { () throws(SystemCallError) in try check("fstat") { fstat(fd, &status) } }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw hostile("\(printable(entry.text.utf8)) changed while it was copied")
        }
        let output = try folder.makeFile(entry, isProgram: status.st_mode & S_IXUSR != 0)
        let before = bytes
        try copyContents(input, to: output, entry: entry) { (staging, count) in
            done += count
            staging.report(min(done, total), of: total)
        }
        guard bytes - before == Int64(status.st_size) else {
            throw hostile("\(printable(entry.text.utf8)) changed while it was copied")
        }
    }

    /// Copies from where `input` stands to its end.
    mutating func copyContents(
        _ input: borrowing Descriptor, to output: borrowing Descriptor, entry: EntryPath,
        progressed: (inout Staging, Int64) -> Void
    ) throws(AssetsError) {
        while true {
            try checkCancelled()
            let count: Int
            do throws(SystemCallError) {
                count = try input.copy(to: output, count: Self.stepMax)
            } catch {
                guard [EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EBADF].contains(error.number) else {
                    throw .writing(printable(entry.text.utf8), error)
                }
                // Other file system, or one that cannot share blocks.
                try copyThroughBuffer(input, to: output, entry: entry, progressed: progressed)
                return
            }
            if count == 0 { return }
            try addBytes(Int64(count))
            progressed(&self, Int64(count))
        }
    }

    private mutating func copyThroughBuffer(
        _ input: borrowing Descriptor, to output: borrowing Descriptor, entry: EntryPath,
        progressed: (inout Staging, Int64) -> Void
    ) throws(AssetsError) {
        let from = input.rawValue
        let to = output.rawValue
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: FileWriter.bufferSize, alignment: 4096)
        defer { buffer.deallocate() }
        while true {
            try checkCancelled()
            let count = try reading(entry.text) { () throws(SystemCallError) in
                try check("read") { read(from, buffer.baseAddress, buffer.count) }
            }
            if count == 0 { return }
            try addBytes(Int64(count))
            var written = 0
            while written < count {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[written..<count])
                written += try writing(printable(entry.text.utf8)) { () throws(SystemCallError) in
                    try check("write") { write(to, rest.baseAddress, rest.count) }
                }
            }
            progressed(&self, Int64(count))
        }
    }
}
