// How much a folder holds that somebody else has filled.
import Glibc
import Testing

@testable import AssetsOS

@Suite("Usage of folders")
struct FolderUsageTests {
    private func withTree(_ body: (DeviceTree, String) throws -> Void) async throws {
        try await withTemporaryFolder { folder in try body(DeviceTree(root: folder), folder) }
    }

    private func write(_ path: String, bytes: Int) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let data = [UInt8](repeating: 1, count: bytes)
        #expect(Glibc.write(file, data, bytes) == bytes)
        close(file)
    }

    @Test("Bytes on the disk count, those of holes and behind links do not")
    func bytes() async throws {
        try await withTree { tree, root in
            mkdir(root + "/a", 0o700)
            mkdir(root + "/a/b", 0o700)
            let empty = try tree.usage(of: "a", filesMax: 100)
            #expect(empty.files == 2 && empty.isComplete)
            write(root + "/a/one", bytes: 100_000)
            write(root + "/a/b/two", bytes: 50_000)
            write(root + "/outside", bytes: 1_000_000)
            symlink("../outside", root + "/a/link")
            symlink("..", root + "/a/b/up")
            let hole = open(root + "/a/hole", O_WRONLY | O_CREAT, 0o600)
            #expect(ftruncate(hole, 1 << 40) == 0)
            close(hole)
            let usage = try tree.usage(of: "a", filesMax: 100)
            #expect(usage.files == 7 && usage.isComplete)
            let grown = usage.bytes - empty.bytes
            #expect(grown >= 150_000 && grown < 200_000, "\(grown)")
            #expect(try tree.usage(of: "nothing", filesMax: 100) == FolderUsage())
            #expect(try tree.usage(of: "a/link", filesMax: 100).files == 1)
        }
    }

    @Test("Names that are no text, and folders that nobody may read, hide nothing")
    func hidden() async throws {
        try await withTree { tree, root in
            mkdir(root + "/a", 0o700)
            for byte in [UInt8](0x80...0x8F) {
                let file = FileName(Array((root + "/a/").utf8) + [byte, 0xFF]).with {
                    open($0, O_CREAT | O_WRONLY, 0o600)
                }
                #expect(file >= 0)
                close(file)
            }
            mkdir(root + "/a/shut", 0o700)
            write(root + "/a/shut/large", bytes: 300_000)
            chmod(root + "/a/shut", 0)
            let usage = try tree.usage(of: "a", filesMax: 100)
            #expect(usage.files == 19 && usage.bytes > 300_000)
        }
    }

    @Test("What is too much to be counted is said to be too much")
    func limits() async throws {
        try await withTree { tree, root in
            mkdir(root + "/many", 0o700)
            for number in 0..<20 { write(root + "/many/\(number)", bytes: 1) }
            #expect(try tree.usage(of: "many", filesMax: 21).isComplete)
            #expect(try tree.usage(of: "many", filesMax: 10).isComplete == false)
            var path = root + "/deep"
            for _ in 0..<100 {
                mkdir(path, 0o700)
                path += "/d"
            }
            let usage = try tree.usage(of: "deep", filesMax: 1000)
            #expect(!usage.isComplete && usage.files < 100)
        }
    }
}
