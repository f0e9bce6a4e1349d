// Finished files share folders, and none takes another's place.
import Testing

@testable import AssetsModel

@Suite struct VendedFoldersTests {
    private var folders = VendedFolders()
    private var names = 0

    private mutating func folder(for name: String, below parent: String = "g") -> String {
        folders.folder(for: name, below: parent) {
            names += 1
            return "new\(names)"
        }
    }

    @Test("Files of different names share a folder, those of one name do not")
    mutating func sharing() {
        let first = [folder(for: "a"), folder(for: "b"), folder(for: "a"), folder(for: "b")]
        #expect(first == ["g/new1", "g/new1", "g/new2", "g/new2"])
        #expect(folder(for: "c", below: "h") == "h/new3")
        #expect(folder(for: "c") == "g/new2")
    }

    @Test("A folder that is full, or that nobody needs, takes no more")
    mutating func ends() {
        let full = (0..<PolicyNumbers.vendedFilesMax).map { folder(for: "\($0)") }
        #expect(Set(full) == ["g/new1"])
        #expect(folder(for: "one more") == "g/new2")
        #expect(folders.isOpen("g/new2"))
        folders.end("g/new2")
        #expect(!folders.isOpen("g/new2") && folders.isOpen("g/new1"))
        #expect(folder(for: "next") == "g/new3")
    }

    @Test("What lies in folders of an earlier process is in nobody's way: no folder gets a name twice")
    mutating func restart() {
        let before = folder(for: "same")
        folders = VendedFolders()
        #expect(folder(for: "other") != before)
        #expect(folder(for: "same") != before)
        folders.end("g/unknown")
        #expect(!folders.isOpen("g/unknown"))
    }
}
