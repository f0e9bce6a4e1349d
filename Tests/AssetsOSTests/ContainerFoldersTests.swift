// Whose container a folder is, and what it is called.
import Testing

@testable import AssetsOS

@Suite struct ContainerFoldersTests {
    /// Counts, so that names can be foretold.
    private final class Counter: RandomSource {
        private let count = Guarded<UInt64>(0xf)

        func next() -> UInt64 {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    /// Folders of groups, and of extensions.
    private func folders(
        _ groups: [String], _ extensions: [String] = [], leaving: Set<String> = []
    ) -> ContainerFolders {
        ContainerFolders(leaving: leaving) { path in
            switch path {
            case "Containers/Group": groups
            case "Containers/Extension": extensions
            default: ["\(path) is no folder of containers"]
            }
        }
    }

    private let zeros = String(repeating: "0", count: 32)
    private let random = Counter()

    @Test("A new container has 128 random bits in its name, and keeps it")
    func made() {
        var folders = ContainerFolders()
        let first = folders.folder(.group, of: "group.a", random: random)
        #expect(first == "Containers/Group/group.a~00000000000000100000000000000011")
        #expect(folders.folder(.group, of: "group.a", random: random) == first)
        #expect(folders[.group, "group.a"] == first && folders[.appExtension, "group.a"] == nil)
        let other = folders.folder(.appExtension, of: "a.extension", random: random)
        #expect(other == "Containers/Extension/a.extension~00000000000000120000000000000013")
    }

    @Test("All bits of the random values are in the name")
    func digits() {
        #expect(ContainerFolders.name(of: "x", .max, 1) == "x~ffffffffffffffff0000000000000001")
        #expect(ContainerFolders.name(of: "x", 0x0123_4567_89ab_cdef, 0) == "x~0123456789abcdef0000000000000000")
    }

    @Test("A listing tells whose container a folder is")
    func listed() {
        let folders = folders(["group.a~\(zeros)", "group.b~1\(zeros.dropFirst())"], ["a~\(zeros)"])
        #expect(folders[.group, "group.a"] == "Containers/Group/group.a~\(zeros)")
        #expect(folders[.group, "group.b"] == "Containers/Group/group.b~1\(zeros.dropFirst())")
        #expect(folders[.appExtension, "a"] == "Containers/Extension/a~\(zeros)")
        #expect(folders[.group, "a"] == nil)
    }

    @Test("What a device has made is found again in its listing")
    func roundTrip() {
        var made = ContainerFolders()
        let path = made.folder(.group, of: "group.a", random: SystemRandomSource())
        #expect(folders([String(path.dropFirst("Containers/Group/".count))]) == made)
    }

    @Test(
        "A name that is not made as ours are is nobody's",
        arguments: [
            "", "~", "group.a", "group.a~", "group.a~0", "~00000000000000000000000000000000",
            "group.a~0000000000000000000000000000000", "group.a~000000000000000000000000000000000",
            "group.a~0000000000000000000000000000000A", "group.a~0000000000000000000000000000000g",
            "group.a~00000000000000000000000000000000~", "group.a-00000000000000000000000000000000",
            "group.a~0000000000000000000000000000000\u{301}",
        ])
    func foreign(name: String) {
        #expect(folders([name], [name]) == ContainerFolders())
    }

    @Test("Of two folders of one identifier the first in the order of bytes counts, whatever the order of the listing")
    func twice() {
        let names = ["a~f\(zeros.dropFirst())", "a~\(zeros)", "a~1\(zeros.dropFirst())"]
        for order in [names, names.reversed(), names.sorted()] {
            #expect(folders(order)[.group, "a"] == "Containers/Group/a~\(zeros)")
        }
    }

    @Test("A folder that is being removed is no container; its owner gets another")
    func leaving() {
        let name = "a~\(zeros)"
        let found = folders([name], [name], leaving: ["Containers/Group/\(name)"])
        #expect(found[.group, "a"] == nil && found[.appExtension, "a"] == "Containers/Extension/\(name)")
        var folders = folders([name], [name])
        folders.remove("Containers/Group/\(name)")
        #expect(folders == found)
        #expect(folders.folder(.group, of: "a", random: random) != "Containers/Group/\(name)")
    }

    @Test("The longest identifier makes a name that file systems take")
    func length() {
        let identifier = String(repeating: "a", count: ContainerFolders.identifierLengthMax)
        #expect(ContainerFolders.name(of: identifier, .max, .max).utf8.count == 255)
    }
}
