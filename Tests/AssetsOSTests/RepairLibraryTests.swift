// Where the library that repairs Foundation is looked for.
import AssetsOS
import Foundation
import Testing

@Suite struct RepairLibraryTests {
    /// Makes files below a new folder and asks for the library beside `bin` in it.
    private func found(_ files: [String], in name: String = "prefix") throws -> String? {
        let root = FileManager.default.temporaryDirectory.path + "/repair-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        let prefix = root + "/" + name
        try FileManager.default.createDirectory(atPath: prefix + "/bin", withIntermediateDirectories: true)
        for file in files {
            let path = prefix + "/" + file
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: path))
        }
        return RepairLibrary.path(besideExecutablesIn: prefix + "/bin").map {
            String($0.dropFirst(prefix.count + 1))
        }
    }

    @Test("It lies beside the service where that was built, else where it was installed")
    func places() throws {
        let (built, installed) = ("bin/libFoundationRepair.so", "lib/backgroundassets/libFoundationRepair.so")
        #expect(try found([built, installed]) == built)
        #expect(try found([installed]) == installed)
        #expect(try found([]) == nil)
    }

    @Test("A path that the loader would take for two is not used", arguments: ["a b", "a:b"])
    func separators(name: String) throws {
        #expect(try found(["bin/libFoundationRepair.so"], in: name) == nil)
    }

    @Test("It is loaded before what its user loads")
    func list() {
        #expect(RepairLibrary.list("/a.so", before: nil) == "/a.so")
        #expect(RepairLibrary.list("/a.so", before: "") == "/a.so")
        #expect(RepairLibrary.list("/a.so", before: "/b.so:/c.so") == "/a.so:/b.so:/c.so")
    }
}
