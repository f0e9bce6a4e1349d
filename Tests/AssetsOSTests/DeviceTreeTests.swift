// Files of a device on a real disk: nothing leads out of it, nothing half written is ever seen.
import AssetsOS
import Glibc
import Testing

/// A fresh directory with a tree in it, removed afterwards by other means than those under test.
private func withTree<R>(_ body: (DeviceTree, String) throws -> R) throws -> R {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array((base + "/tree-test-XXXXXX").utf8CString)
    let made = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer { shell("chmod -R u+rwx '\(made)'; rm -rf '\(made)'") }
    let root = made + "/root"
    mkdir(root, 0o700)
    return try body(DeviceTree(root: root), root)
}

@discardableResult
private func shell(_ command: String) -> Int32 {
    var pid = pid_t()
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(command), nil]
    defer { arguments.forEach { free($0) } }
    guard posix_spawn(&pid, "/bin/sh", nil, nil, &arguments, environ) == 0 else { return -1 }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
    return status
}

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func number(_ body: () throws -> Void) -> Int32? {
    do {
        try body()
        return nil
    } catch {
        return (error as? SystemCallError)?.number
    }
}

@Suite("Paths of a device")
struct DeviceTreePathTests {
    @Test(
        "What is no path below the root is refused",
        // The last has a mark on its slash, which for the kernel is a slash.
        arguments: ["", "/etc", "..", "a/../b", "a//b", "./a", "a/", "a\0b", "../\u{301}b"])
    func badPaths(path: String) throws {
        try withTree { tree, _ in
            #expect(number { try tree.makeDirectory(path) } == EINVAL)
            #expect(number { _ = try tree.status(path) } == EINVAL)
            #expect(number { _ = try tree.openAppendable(path) } == EINVAL)
            #expect(number { _ = try tree.read(path, limit: 10) } == EINVAL)
            #expect(number { try tree.replace(path, with: [], mode: 0o600) } == EINVAL)
            #expect(number { try tree.rename(path, to: "b", exclusively: false) } == EINVAL)
            #expect(number { try tree.remove(path) } == EINVAL)
            #expect(number { try tree.replaceLink(path, target: "x") } == EINVAL)
            #expect(number { _ = try tree.inodes(of: [path], in: ".") } == EINVAL)
            let names = [Renaming(from: "a", to: path), Renaming(from: path, to: "a")]
            let moved = try tree.moveFiles(names, from: ".", to: ".")
            #expect(moved.map { $0?.number } == [EINVAL, EINVAL])
        }
    }

    @Test(
        "Dots are part of a name where it has something else, or more than two", arguments: ["...", ".a", "..a", "a."])
    func dots(name: String) throws {
        try withTree { tree, _ in
            try tree.makeDirectory("\(name)/\(name)")
            try tree.replace("\(name)/\(name)/\(name)", with: bytes("dots"), mode: 0o600)
            #expect(try tree.read("\(name)/\(name)/\(name)", limit: 10) == bytes("dots"))
            #expect(try tree.inodes(of: [name], in: name) == [tree.status("\(name)/\(name)")?.inode])
        }
    }

    @Test("No link leads anywhere, inside or outside")
    func links() throws {
        try withTree { tree, root in
            try tree.makeDirectory("inside")
            try tree.replace("inside/file", with: bytes("secret"), mode: 0o600)
            for (link, target) in [("out", "/etc"), ("in", "inside"), ("up", "../.."), ("proc", "/proc/self/root")] {
                try tree.replaceLink(link, target: target)
                #expect(number { _ = try tree.read(link + "/file", limit: 100) } == ELOOP)
                #expect(number { _ = try tree.list(link) } == ELOOP)
                #expect(number { try tree.replace(link + "/file", with: [], mode: 0o600) } == ELOOP)
                #expect(number { _ = try tree.openAppendable(link + "/new") } == ELOOP)
                #expect(number { _ = try tree.openAppendable(link) } == ELOOP)
                #expect(number { try tree.rename("inside/file", to: link + "/x", exclusively: false) } == ELOOP)
                #expect(number { try tree.setAttribute(link, name: "user.a", value: "b") } == ELOOP)
                #expect(number { try tree.makeDirectory(link + "/deep") } != nil)
                #expect(number { try tree.remove(link + "/file") } == ELOOP)
                #expect(try tree.status(link)?.kind == .link)
                #expect(try tree.readLink(link) == target)
            }
            #expect(try tree.read("inside/file", limit: 100) == bytes("secret"))
        }
    }

    @Test("Folders are made with their parents, for their owner only")
    func makeDirectory() throws {
        try withTree { tree, root in
            try tree.makeDirectory("a/b/c")
            try tree.makeDirectory("a/b/c")
            for path in ["a", "a/b", "a/b/c"] {
                var status = stat()
                try #require(lstat(root + "/" + path, &status) == 0)
                #expect(status.st_mode & 0o777 == 0o700)
            }
            try tree.replace("a/file", with: [], mode: 0o600)
            #expect(number { try tree.makeDirectory("a/file") } == ENOTDIR)
            #expect(number { try tree.makeDirectory("a/file/x") } == ENOTDIR)
        }
    }

    @Test("What is not there has no status; names are listed in the order of their bytes")
    func status() throws {
        try withTree { tree, _ in
            #expect(try tree.status("a") == nil)
            #expect(try tree.status("a/b/c") == nil)
            for name in ["b", "a", "Z", "ä", "10", "9"] { try tree.replace(name, with: bytes(name), mode: 0o600) }
            #expect(try tree.list(".") == ["10", "9", "Z", "a", "b", "ä"])
            #expect(try tree.status("a/b") == nil)
            #expect(try tree.status("10")?.size == 2)
        }
    }
}

@Suite("Files of a device")
struct DeviceTreeFileTests {
    @Test("A file is replaced whole, with its mode, and leaves nothing beside it")
    func replace() throws {
        try withTree { tree, root in
            try tree.replace("file", with: bytes("old"), mode: 0o640)
            let old = try #require(try tree.status("file"))
            let kept = open(root + "/file", O_RDONLY)
            defer { close(kept) }
            try tree.replace("file", with: bytes("the new content"), mode: 0o600)
            #expect(try tree.read("file", limit: 100) == bytes("the new content"))
            #expect(try tree.status("file")?.inode != old.inode)
            #expect(try tree.list(".") == ["file"])
            // Who had it open still reads the old one.
            var seen = [UInt8](repeating: 0, count: 100)
            #expect(read(kept, &seen, 100) == 3)
            var status = stat()
            try #require(stat(root + "/file", &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test("A file that cannot be replaced stays, and nothing is left beside it")
    func replaceFails() throws {
        try withTree { tree, root in
            try tree.makeDirectory("folder/full")
            #expect(number { try tree.replace("folder", with: bytes("x"), mode: 0o600) } == EISDIR)
            #expect(try tree.list(".") == ["folder"])
        }
    }

    @Test("A file beyond the limit is not read; neither is what is no file")
    func readLimit() throws {
        try withTree { tree, root in
            try tree.replace("file", with: bytes("12345"), mode: 0o600)
            #expect(try tree.read("file", limit: 5) == bytes("12345"))
            #expect(number { _ = try tree.read("file", limit: 4) } == EFBIG)
            #expect(number { _ = try tree.read("none", limit: 4) } == ENOENT)
            try #require(mkfifo(root + "/pipe", 0o600) == 0)
            #expect(number { _ = try tree.read("pipe", limit: 4) } == EINVAL)
            #expect(number { _ = try tree.openAppendable("pipe") } == EINVAL)
            // Files of /proc have no size.
            let proc = try DeviceTree(root: "/proc/self")
            #expect(try proc.read("status", limit: 100_000).count > 100)
            #expect(number { _ = try proc.read("status", limit: 100) } == EFBIG)
        }
    }

    @Test("A rename moves over a file unless it must not")
    func rename() throws {
        try withTree { tree, _ in
            try tree.makeDirectory("a")
            try tree.replace("a/x", with: bytes("x"), mode: 0o600)
            try tree.replace("y", with: bytes("y"), mode: 0o600)
            #expect(number { try tree.rename("a/x", to: "y", exclusively: true) } == EEXIST)
            try tree.rename("a/x", to: "y", exclusively: false)
            try tree.rename("y", to: "a/z", exclusively: true)
            try tree.syncDirectory("a")
            try tree.syncDirectory(".")
            #expect(try tree.list("a") == ["z"] && tree.list(".") == ["a"])
            #expect(try tree.read("a/z", limit: 1) == bytes("x"))
        }
    }

    @Test("A link is replaced at once, whatever it led to")
    func replaceLink() throws {
        try withTree { tree, _ in
            try tree.replaceLink("current", target: "1")
            try tree.replaceLink("current", target: "2")
            #expect(try tree.readLink("current") == "2" && tree.list(".") == ["current"])
            try tree.makeDirectory("folder")
            #expect(number { try tree.replaceLink("folder", target: "x") } == EISDIR)
            #expect(try tree.list(".") == ["current", "folder"])
        }
    }

    @Test("An attribute is what was set last, and nil before")
    func attributes() throws {
        try withTree { tree, _ in
            try tree.replace("file", with: [], mode: 0o600)
            #expect(try tree.attribute("file", name: "user.test") == nil)
            try tree.setAttribute("file", name: "user.test", value: "one")
            try tree.setAttribute("file", name: "user.test", value: "twö")
            #expect(try tree.attribute("file", name: "user.test") == "twö")
            try tree.setAttribute("file", name: "user.test", value: "")
            #expect(try tree.attribute("file", name: "user.test") == "")
            #expect(number { _ = try tree.attribute("none", name: "user.test") } == ENOENT)
        }
    }

    @Test("What was made read-only can be read and removed, not written, also by its owner")
    func readOnly() throws {
        try withTree { tree, path in
            try tree.replace("file", with: bytes("text"), mode: 0o600)
            try tree.makeReadOnly("file")
            #expect(try tree.read("file", limit: 10) == bytes("text"))
            var status = stat()
            #expect(stat(path + "/file", &status) == 0 && status.st_mode & 0o777 == 0o400)
            // Nothing is refused to root.
            if geteuid() != 0 { #expect(number { _ = try tree.openAppendable("file") } == EACCES) }
            #expect(number { try tree.makeReadOnly("none") } == ENOENT)
            try tree.remove("file")
        }
    }

    @Test("Space and epoch are those of the file system")
    func space() throws {
        try withTree { tree, root in
            let space = try tree.space()
            #expect(space.free > 0 && space.free <= space.total)
            let epoch = try tree.storageEpoch()
            #expect(try epoch == DeviceTree(root: root).storageEpoch())
            #expect(try epoch != DeviceTree(root: "/proc").storageEpoch())
            #expect(epoch.split(separator: ":").count == 2)
        }
    }
}

@Suite("Unfinished downloads on a disk")
struct DeviceFileTests {
    private func append(_ text: String, to file: any AppendableFile) throws {
        try bytes(text).withUnsafeBytes { try file.append($0) }
    }

    @Test("A file grows at its end, across openings, and is cut back")
    func append() throws {
        try withTree { tree, _ in
            let file = try tree.openAppendable("file")
            try append("hello ", to: file)
            try append("world", to: file)
            #expect(file.length == 11)
            try file.sync()
            let again = try tree.openAppendable("file")
            #expect(again.length == 11 && again.inode == file.inode)
            try again.truncate(to: 6)
            try append("moon", to: again)
            #expect(try tree.read("file", limit: 100) == bytes("hello moon"))
            var read: [UInt8] = []
            try again.read(from: 6, count: .max) { read += $0 }
            #expect(read == bytes("moon"))
            try again.read(from: 1, count: 4) { read += $0 }
            try again.read(from: 99, count: 1) { read += $0 }
            #expect(read == bytes("moonello"))
        }
    }

    @Test("Room is reserved without changing the length")
    func reserve() throws {
        try withTree { tree, root in
            let file = try tree.openAppendable("file")
            try append("1", to: file)
            try file.reserve(total: 1 << 20)
            #expect(file.length == 1)
            #expect(try tree.status("file")?.size == 1)
            var status = stat()
            try #require(stat(root + "/file", &status) == 0)
            #expect(status.st_blocks * 512 >= 1 << 20)
            try file.reserve(total: 0)
        }
    }

    @Test("More than the disk has cannot be reserved")
    func reserveTooMuch() throws {
        try withTree { tree, root in
            let file = try tree.openAppendable("file")
            let total = try tree.space().total
            for too in [total + (1 << 30), .max] {
                #expect(number { try file.reserve(total: too) } == ENOSPC)
            }
            #expect(file.length == 0)
            // Nothing was taken from others in the attempt.
            var status = stat()
            try #require(stat(root + "/file", &status) == 0)
            #expect(status.st_blocks == 0)
        }
    }

    @Test("Many pieces beyond the write-back mark arrive unharmed")
    func manyPieces() throws {
        try withTree { tree, _ in
            let file = try tree.openAppendable("file")
            let piece = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            for _ in 0..<20 { try piece.withUnsafeBytes { try file.append($0) } }
            #expect(file.length == 20 << 20)
            var isWhole = true
            var position = 0
            try file.read(from: 0, count: .max) { bytes in
                for byte in bytes {
                    isWhole = isWhole && byte == piece[position % piece.count]
                    position += 1
                }
            }
            #expect(isWhole && position == 20 << 20)
        }
    }
}

@Suite("Removal")
struct DeviceTreeRemovalTests {
    @Test("Nothing there is no error")
    func nothing() throws {
        try withTree { tree, _ in
            try tree.remove("a")
            try tree.remove("a/b/c")
            try tree.replace("file", with: [], mode: 0o600)
            try tree.remove("file/below")
            try tree.remove("file")
            #expect(try tree.list(".").isEmpty)
        }
    }

    @Test("Links are removed, what they lead to is not")
    func links() throws {
        try withTree { tree, root in
            try tree.makeDirectory("outside/deep")
            try tree.replace("outside/deep/file", with: bytes("x"), mode: 0o600)
            try tree.makeDirectory("folder/sub/sub")
            for path in ["folder/link", "folder/sub/link", "folder/sub/sub/link"] {
                try tree.replaceLink(path, target: root + "/outside")
            }
            try tree.replaceLink("link", target: "outside")
            try tree.remove("link")
            try tree.remove("folder")
            #expect(try tree.list(".") == ["outside"])
            #expect(try tree.read("outside/deep/file", limit: 1) == bytes("x"))
        }
    }

    @Test("Folders that nobody may read or write are removed all the same")
    func modes() throws {
        try withTree { tree, root in
            try tree.makeDirectory("top/a/b/c")
            try tree.makeDirectory("top/a/d/e/f")
            try tree.replace("top/a/b/c/file", with: bytes("x"), mode: 0o000)
            shell("chmod 000 '\(root)'/top/a/b/c; chmod 500 '\(root)'/top/a/b; chmod 111 '\(root)'/top/a/d/e")
            shell("chmod 000 '\(root)'/top/a '\(root)'/top")
            try tree.remove("top")
            #expect(try tree.list(".").isEmpty)
        }
    }

    @Test("Neither depth nor names nor numbers nor kinds of files stop a removal")
    func hostile() throws {
        try withTree { tree, root in
            try tree.makeDirectory("top/wide")
            // Deeper than any path may be long, and than descriptors go around.
            let script = """
                cd '\(root)/top' && perl -e '
                    for (1..3000) { mkdir "d" x 50; chdir "d" x 50; open(F, ">f"); close F }' &&
                cd '\(root)/top/wide' && perl -e 'for (1..10000) { open(F, ">", "f$_"); close F }' &&
                perl -e 'mkdir "\\xff\\xfe"; open(F, ">", "\\xff\\xfe/\\n"); close F; mkdir ".new-1"; mkdir ".new-1/x"' &&
                mkfifo pipe && perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("s"))'
                """
            try #require(shell(script) == 0)
            try tree.remove("top")
            #expect(try tree.list(".").isEmpty)
        }
    }

    @Test("A removal that was cut short is finished by the next")
    func again() throws {
        try withTree { tree, root in
            try tree.makeDirectory("top/a/b/c")
            try tree.makeDirectory("top/.new-1/x")
            try tree.replace("top/.new-2", with: [], mode: 0o600)
            try tree.remove("top")
            #expect(try tree.status("top") == nil)
        }
    }
}
