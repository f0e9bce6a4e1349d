// The tree in memory answers as a real directory does, and forgets what it may.
import AssetsOS
import BackgroundAssetsTesting
import Glibc
import Testing

extension AppendableFile {
    fileprivate func append(_ text: String) throws {
        try Array(text.utf8).withUnsafeBytes { bytes in try append(bytes) }
    }
}

extension FileTree {
    fileprivate func text(_ path: String) throws -> String {
        String(decoding: try read(path, limit: 1 << 20), as: UTF8.self)
    }
}

@Suite("Memory tree")
struct MemoryTreeTests {
    /// What a tree answers to a long list of calls, line by line; inodes are told by the order of their appearance.
    private func answers(of tree: any FileTree) throws -> [String] {
        var lines: [String] = []
        var inodes: [UInt64] = []
        func note(_ what: String, _ body: () throws -> String) throws {
            do {
                lines.append("\(what): \(try body())")
            } catch let error as SystemCallError {
                lines.append("\(what): errno \(error.number)")
            }
        }
        func show(_ status: FileStatus?) -> String {
            guard let status else { return "nothing" }
            if !inodes.contains(status.inode) { inodes.append(status.inode) }
            let number = inodes.firstIndex(of: status.inode) ?? -1
            return "\(status.kind) #\(number)" + (status.kind == .file ? " \(status.size)" : "")
        }
        func call(_ what: String, _ body: () throws -> Void) throws {
            try note(what) {
                try body(); return "done"
            }
        }
        let paths = [
            "a", "a/b", "a/b/c", "a/f", "l", "d", "d/f", "f", "nothing/x", "f/x", "l/x", "", "/a", "a/", "../x",
            "a/./b",
        ]
        func look() throws {
            for path in paths {
                try note("status \(path)") { show(try tree.status(path)) }
                try note("list \(path)") { try tree.list(path).joined(separator: " ") }
                try note("read \(path)") { try tree.text(path) }
                try note("link \(path)") { try tree.readLink(path) }
                try note("attribute \(path)") { try tree.attribute(path, name: "user.a") ?? "none" }
            }
            try note("list .") { try tree.list(".").joined(separator: " ") }
        }
        try look()
        try call("mkdir") { try tree.makeDirectory("a/b/c") }
        try call("mkdir again") { try tree.makeDirectory("a/b") }
        try call("replace") { try tree.replace("a/f", with: Array("old".utf8), mode: 0o600) }
        try call("replace again") { try tree.replace("a/f", with: Array("newer".utf8), mode: 0o600) }
        try call("replace a folder") { try tree.replace("a/b", with: [], mode: 0o600) }
        try call("replace nowhere") { try tree.replace("nothing/x", with: [], mode: 0o600) }
        try call("link") { try tree.replaceLink("l", target: "a/f") }
        try call("link again") { try tree.replaceLink("l", target: "a") }
        try call("link over a folder") { try tree.replaceLink("a", target: "x") }
        try call("empty link") { try tree.replaceLink("m", target: "") }
        try look()
        try call("mkdir on a file") { try tree.makeDirectory("a/f") }
        try call("mkdir below a file") { try tree.makeDirectory("a/f/x") }
        try call("mkdir on a link") { try tree.makeDirectory("l") }
        try call("mkdir below a link") { try tree.makeDirectory("l/x") }
        try call("attribute") { try tree.setAttribute("a/f", name: "user.a", value: "7") }
        try call("attribute of a folder") { try tree.setAttribute("a/b", name: "user.a", value: "8") }
        try call("attribute of nothing") { try tree.setAttribute("x", name: "user.a", value: "8") }
        try call("replace what is read-only") {
            try tree.replace("r", with: [1], mode: 0o600)
            try tree.makeReadOnly("r")
            try tree.replace("r", with: [2], mode: 0o600)
            try tree.remove("r")
        }
        try call("read-only nothing") { try tree.makeReadOnly("x") }
        try call("read-only link") { try tree.makeReadOnly("l") }
        try call("attribute of a link") { try tree.setAttribute("l", name: "user.a", value: "8") }
        try call("append") {
            let file = try tree.openAppendable("f")
            try file.append("12345678")
            try file.reserve(total: 100)
            try file.truncate(to: 5)
            try file.append("ab")
            try file.truncate(to: 9)
            try file.sync()
            lines.append("length \(file.length) \(file.inode == (try tree.status("f"))?.inode)")
            var read: [UInt8] = []
            try file.read(from: 3, count: .max) { read += $0 }
            lines.append("\(read)")
            try file.read(from: 99, count: .max) { read += $0 }
            lines.append("\(read.count)")
            try tree.remove("f")
            try file.append("more")
            lines.append("length \(file.length)")
        }
        for path in ["a", "l", "f/x", "nothing/x", "a/f/x", "/", "a//b"] {
            try call("open \(path)") { _ = try tree.openAppendable(path) }
        }
        try look()
        let renames = [
            ("a/f", "d"), ("a/b", "a/b/c/x"), ("a/b", "d"), ("d", "a/b"), ("d", "f"), ("nothing", "f"),
            ("f", "nothing/x"),
            ("f", "f"), ("l", "a/l"), ("a/l", "l"), ("a/b/c", "d"), ("a", "d"), ("f", "l"), ("..", "x"),
        ]
        for (from, to) in renames {
            try call("rename \(from) \(to) exclusively") { try tree.rename(from, to: to, exclusively: true) }
            try call("rename \(from) \(to)") { try tree.rename(from, to: to, exclusively: false) }
            try look()
        }
        try call("limit") { _ = try tree.read("l", limit: 2) }
        for path in ["d", ".", "l", "nothing"] { try call("sync \(path)") { try tree.syncDirectory(path) } }
        for path in ["nothing", "nothing/x", "l/x", "l", "d", "d", "..", ""] {
            try call("remove \(path)") { try tree.remove(path) }
        }
        try look()
        return lines
    }

    @Test("It answers every call as a real directory does")
    func parity() throws {
        var template = Array(((getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/tree.XXXXXX").utf8CString)
        try #require(mkdtemp(&template) != nil)
        let root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let real = try DeviceTree(root: root)
        defer {
            for name in (try? real.list(".")) ?? [] { try? real.remove(name) }
            rmdir(root)
        }
        let expected = try answers(of: real)
        let answered = try answers(of: MemoryTree())
        #expect(expected.count == answered.count)
        for (expected, answered) in zip(expected, answered) { #expect(answered == expected) }
    }

    @Test("A power cut forgets bytes that were not synced, and brings back what a cut took away")
    func bytes() throws {
        let tree = MemoryTree()
        let file = try tree.openAppendable("f")
        try file.append("synced")
        try file.sync()
        try tree.syncDirectory(".")
        try file.append(" lost")
        let epoch = try tree.storageEpoch()
        tree.powerCut()
        #expect(try tree.text("f") == "synced")
        #expect(try tree.storageEpoch() != epoch)
        let error = #expect(throws: SystemCallError.self) { try file.append("x") }
        #expect(error?.number == EIO)

        let second = try tree.openAppendable("f")
        #expect(second.inode == file.inode)
        try second.truncate(to: 4)
        try second.append("!")
        try second.truncate(to: 2)
        #expect(try tree.text("f") == "sy")
        tree.powerCut()
        #expect(try tree.text("f") == "synced")
        let third = try tree.openAppendable("f")
        try third.truncate(to: 2)
        try third.sync()
        tree.powerCut()
        #expect(try tree.text("f") == "sy")
    }

    @Test("A name survives once its directory was synced, and not without its parents")
    func names() throws {
        let tree = MemoryTree()
        try tree.makeDirectory("a/b")
        let file = try tree.openAppendable("a/b/f")
        try file.append("x")
        try file.sync()
        try tree.syncDirectory("a/b")
        tree.powerCut()
        #expect(try tree.list(".").isEmpty)

        try tree.makeDirectory("a/b")
        try tree.replace("a/b/f", with: [1, 2, 3], mode: 0o600)
        try tree.syncDirectory("a")
        try tree.syncDirectory(".")
        _ = try tree.openAppendable("a/g")
        tree.powerCut()
        #expect(try tree.read("a/b/f", limit: 9) == [1, 2, 3])
        #expect(try tree.list("a") == ["b"])
        try tree.remove("a/b")
        #expect(try tree.status("a/b") == nil)
        tree.powerCut()
        #expect(try tree.read("a/b/f", limit: 9) == [1, 2, 3])
    }

    @Test("A rename is there wholly or not at all, however the power fails", arguments: UInt64(0)..<64)
    func renames(seed: UInt64) throws {
        let tree = MemoryTree()
        try tree.makeDirectory("from")
        try tree.makeDirectory("to")
        try tree.syncDirectory(".")
        let file = try tree.openAppendable("from/f")
        try file.append("content")
        try file.sync()
        try tree.syncDirectory("from")
        try tree.rename("from/f", to: "to/f", exclusively: true)
        let syncs = seed % 3
        if syncs == 1 { try tree.syncDirectory("from") }
        if syncs == 2 { try tree.syncDirectory("to") }
        tree.powerCut(seed < 6 ? .forgetsAll : .forgetsSome(seed: seed))
        let source = try tree.status("from/f")
        let target = try tree.status("to/f")
        #expect((source == nil) != (target == nil))
        if syncs > 0 { #expect(target?.inode == file.inode) }
        if syncs == 0 && seed < 6 { #expect(source?.inode == file.inode) }
        #expect((source ?? target)?.size == 7)
    }

    @Test("By chance some unsynced bytes survive, synced ones always, and the seed decides")
    func chance() throws {
        var lengths: Set<Int64> = []
        for seed in UInt64(1)...100 {
            let sizes = try (0..<2).map { _ in
                let tree = MemoryTree()
                let file = try tree.openAppendable("f")
                try file.append("synced")
                try file.sync()
                try tree.syncDirectory(".")
                try file.append(String(repeating: "x", count: 100))
                tree.powerCut(.forgetsSome(seed: seed))
                #expect(try tree.text("f").hasPrefix("synced"))
                return try #require(try tree.status("f")).size
            }
            #expect(sizes[0] == sizes[1])
            lengths.insert(sizes[0])
        }
        #expect(lengths.contains(6))
        #expect(lengths.count > 10)
    }

    @Test("Space is what files, reservations and open files without a name take")
    func space() throws {
        let tree = MemoryTree(capacity: 100)
        func free() throws -> Int64 { try tree.space().free }
        var file: (any AppendableFile)? = try tree.openAppendable("f")
        try file?.reserve(total: 40)
        try file?.append(String(repeating: "x", count: 10))
        #expect(try free() == 60)
        let tooMuch = #expect(throws: SystemCallError.self) { try file?.reserve(total: 101) }
        #expect(tooMuch?.number == ENOSPC)
        try tree.replace("g", with: Array(repeating: 0, count: 50), mode: 0o600)
        #expect(try free() == 10)
        let full = #expect(throws: SystemCallError.self) { try file?.append(String(repeating: "y", count: 60)) }
        #expect(full?.number == ENOSPC)
        #expect(file?.length == 50)
        #expect(try free() == 0)
        try tree.remove("g")
        #expect(try free() == 50)
        try tree.remove("f")
        #expect(try free() == 50)
        file = nil
        #expect(try free() == 100)
        #expect(try tree.space().total == 100)
        tree.setCapacity(10)
        #expect(throws: SystemCallError.self) {
            try tree.replace("g", with: Array(repeating: 0, count: 50), mode: 0o600)
        }
    }

    @Test("Any call can be made to fail, once, and an append then leaves half")
    func faults() throws {
        let tree = MemoryTree()
        tree.fail(call: 2, with: ENOSPC)
        try tree.makeDirectory("a")
        let error = #expect(throws: SystemCallError.self) { try tree.makeDirectory("b") }
        #expect(error?.number == ENOSPC)
        try tree.makeDirectory("b")
        #expect(try tree.list(".") == ["a", "b"])
        let file = try tree.openAppendable("f")
        tree.fail(call: 1, with: EIO)
        #expect(throws: SystemCallError.self) { try file.append("123456") }
        #expect(file.length == 3)
        let seen = Guarded<[MemoryTree.Call]>([])
        tree.setFault { call in
            seen.withLock { $0.append(call) }
            return nil
        }
        try tree.rename("a", to: "c", exclusively: true)
        #expect(seen.withLock { $0.map(\.name) } == ["rename"])
        #expect(seen.withLock { $0.map(\.number) } == [tree.calls])
    }

    @Test("Many files come and go without being kept for ever")
    func garbage() throws {
        let tree = MemoryTree()
        for number in 0..<5000 {
            try tree.replace("f\(number)", with: [1], mode: 0o600)
            try tree.remove("f\(number)")
        }
        try tree.syncDirectory(".")
        #expect(try tree.space().free == tree.space().total)
        #expect(tree.filesInMemory < 1100)
    }
}
