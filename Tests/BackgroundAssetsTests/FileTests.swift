internal import AssetsOS
internal import AssetsWire
internal import Foundation
internal import Testing

@testable import BackgroundAssets

@Suite struct ReplacementTests {
    @Test("The new file takes the place, name and permissions of the original")
    func existing() throws {
        let folder = try TemporaryFolder()
        let original = try folder.file("original", "old")
        let new = try folder.file("new", "new")
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: original.path)
        #expect(try FileManager.default.replaceItemAt(original, withItemAt: new) == original)
        #expect(text(original) == "new")
        #expect(folder.names == ["original"])
        let mode = try FileManager.default.attributesOfItem(atPath: original.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o640)
    }

    @Test("Without an original the new file is moved")
    func missing() throws {
        let folder = try TemporaryFolder()
        let original = folder.url.appendingPathComponent("original")
        let new = try folder.file("new", "new")
        #expect(try FileManager.default.replaceItemAt(original, withItemAt: new) == original)
        #expect(text(original) == "new")
        #expect(folder.names == ["original"])
    }

    @Test("Without a new file the original stays")
    func nothingNew() throws {
        let folder = try TemporaryFolder()
        let original = try folder.file("original", "old")
        let error = #expect(throws: CocoaError.self) {
            try FileManager.default.replaceItemAt(
                original, withItemAt: folder.url.appendingPathComponent("new"))
        }
        #expect(error?.code == .fileNoSuchFile)
        #expect(text(original) == "old")
    }

    @Test("An item that replaces itself stays")
    func same() throws {
        let folder = try TemporaryFolder()
        let original = try folder.file("original", "old")
        try FileManager.default.replaceItemAt(original, withItemAt: original)
        #expect(text(original) == "old")
    }

    @Test("A folder replaces a folder, a file a folder, a folder a file")
    func folders() throws {
        let folder = try TemporaryFolder()
        _ = try folder.file("a/one", "1")
        _ = try folder.file("b/two", "2")
        let first = folder.url.appendingPathComponent("a")
        let second = folder.url.appendingPathComponent("b")
        try FileManager.default.replaceItemAt(first, withItemAt: second)
        #expect(folder.names == ["a"])
        #expect(text(first.appendingPathComponent("two")) == "2")
        #expect(!FileManager.default.fileExists(atPath: first.appendingPathComponent("one").path))
        let file = try folder.file("file", "f")
        try FileManager.default.replaceItemAt(first, withItemAt: file)
        #expect(text(first) == "f")
        _ = try folder.file("b/three", "3")
        try FileManager.default.replaceItemAt(first, withItemAt: second)
        #expect(text(first.appendingPathComponent("three")) == "3")
        #expect(folder.names == ["a"])
    }

    @Test("A link is replaced, not followed")
    func link() throws {
        let folder = try TemporaryFolder()
        let target = try folder.file("target", "kept")
        let link = folder.url.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        try FileManager.default.replaceItemAt(link, withItemAt: try folder.file("new", "new"))
        #expect(text(target) == "kept")
        #expect(text(link) == "new")
        #expect(folder.names == ["link", "target"])
    }

    /// Another file system than that of the temporary folder, where this machine has one.
    static let secondVolume: URL? = {
        func device(_ path: String) -> UInt64? {
            var status = stat()
            return stat(path, &status) == 0 ? UInt64(status.st_dev) : nil
        }
        let shared = "/dev/shm"
        guard access(shared, W_OK) == 0, device(shared) != device(FileManager.default.temporaryDirectory.path) else {
            return nil
        }
        return URL(fileURLWithPath: shared, isDirectory: true)
    }()

    @Test(
        "A file on another file system replaces and is gone there",
        .enabled(if: secondVolume != nil, "needs /dev/shm on a file system of its own"),
        arguments: [true, false])
    func otherFileSystem(hasOriginal: Bool) throws {
        let folder = try TemporaryFolder()
        let other = try TemporaryFolder(in: try #require(Self.secondVolume))
        let original = folder.url.appendingPathComponent("original")
        if hasOriginal { _ = try folder.file("original", "old") }
        let new = try other.file("new", "new")
        try FileManager.default.replaceItemAt(original, withItemAt: new)
        #expect(text(original) == "new")
        #expect(folder.names == ["original"])
        #expect(other.names == [])
    }

    @Test(
        "A folder on another file system replaces a folder",
        .enabled(if: secondVolume != nil, "needs /dev/shm on a file system of its own"))
    func otherFolder() throws {
        let folder = try TemporaryFolder()
        let other = try TemporaryFolder(in: try #require(Self.secondVolume))
        _ = try folder.file("a/old", "1")
        _ = try other.file("b/new", "2")
        let original = folder.url.appendingPathComponent("a")
        try FileManager.default.replaceItemAt(original, withItemAt: other.url.appendingPathComponent("b"))
        #expect(text(original.appendingPathComponent("new")) == "2")
        #expect(folder.names == ["a"])
        #expect(other.names == [])
    }

    @Test("A backup stays where it is asked for, in the place of an older one", arguments: [true, false])
    func backup(isKept: Bool) throws {
        let folder = try TemporaryFolder()
        for name in ["a", "backup"] { _ = try folder.file(name, "old \(name)") }
        let original = folder.url.appendingPathComponent("a")
        let answer = try FileManager.default.repairedReplaceItemAt(
            original, withItemAt: try folder.file("b", "new"), backupItemName: "backup",
            options: isKept ? .withoutDeletingBackupItem : [])
        #expect(answer == original)
        #expect(text(original) == "new")
        #expect(folder.names == (isKept ? ["a", "backup"] : ["a"]))
        if isKept { #expect(text(folder.url.appendingPathComponent("backup")) == "old a") }
    }

    @Test("A folder has a backup, too; where there was nothing there is none")
    func folderBackup() throws {
        let folder = try TemporaryFolder()
        _ = try folder.file("a/one", "1")
        _ = try folder.file("b/two", "2")
        let original = folder.url.appendingPathComponent("a")
        _ = try FileManager.default.repairedReplaceItemAt(
            original, withItemAt: folder.url.appendingPathComponent("b"), backupItemName: "backup",
            options: .withoutDeletingBackupItem)
        #expect(text(folder.url.appendingPathComponent("backup/one")) == "1")
        #expect(text(original.appendingPathComponent("two")) == "2")
        _ = try FileManager.default.repairedReplaceItemAt(
            folder.url.appendingPathComponent("c"), withItemAt: try folder.file("d", "new"), backupItemName: "other",
            options: .withoutDeletingBackupItem)
        #expect(folder.names == ["a", "backup", "c"])
    }

    @Test(
        "A backup's name that is no name, or that of the items, is refused and nothing is lost",
        arguments: ["x/y", "..", ".", "a", "b", String(repeating: "n", count: 300)])
    func badBackup(name: String) throws {
        let folder = try TemporaryFolder()
        let (original, new) = (try folder.file("a", "old"), try folder.file("b", "new"))
        #expect(throws: CocoaError.self) {
            try FileManager.default.repairedReplaceItemAt(
                original, withItemAt: new, backupItemName: name, options: [])
        }
        #expect(text(original) == "old" && text(new) == "new")
    }

    @Test("The new file takes the original's permissions unless its own are wanted", arguments: [true, false])
    func metadata(isNewOnly: Bool) throws {
        let folder = try TemporaryFolder()
        let (original, new) = (try folder.file("a", "old"), try folder.file("b", "new"))
        chmod(original.path, 0o640)
        chmod(new.path, 0o600)
        _ = try FileManager.default.repairedReplaceItemAt(
            original, withItemAt: new, backupItemName: nil, options: isNewOnly ? .usingNewMetadataOnly : [])
        let mode = try FileManager.default.attributesOfItem(atPath: original.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == (isNewOnly ? 0o600 : 0o640))
    }

    @Test("A replacement that fails leaves both items")
    func failure() throws {
        let folder = try TemporaryFolder()
        let new = try folder.file("new", "new")
        let error = #expect(throws: CocoaError.self) {
            try FileManager.default.replaceItemAt(
                folder.url.appendingPathComponent("no/such/folder"), withItemAt: new)
        }
        #expect(error?.code == .fileNoSuchFile)
        #expect(text(new) == "new")
    }
}

@Suite struct ContainerTests {
    private func makeBundle(_ folder: TemporaryFolder, _ bundle: String, groups: [String]) throws -> String {
        let data = try PropertyListSerialization.data(
            fromPropertyList: ["com.apple.security.application-groups": groups], format: .xml, options: 0)
        _ = try folder.file(bundle + "/Entitlements.plist", String(decoding: data, as: UTF8.self))
        return folder.url.path + "/" + bundle + "/bin/program"
    }

    @Test("An app finds the groups of its bundle, without a service")
    func app() throws {
        let folder = try TemporaryFolder()
        let program = try makeBundle(folder, "X.app", groups: ["group.a", "group.b"])
        let root = folder.url.path + "/device"
        let (first, second) = (ContainerFolders.name(of: "group.a", 1, 2), ContainerFolders.name(of: "group.b", 3, 4))
        for name in [first, second, ContainerFolders.name(of: "group.c", 5, 6)] {
            _ = try folder.file("device/Containers/Group/\(name)/file", "")
        }
        let containers = GroupContainers(environment: ["BACKGROUNDASSETS_DEVICE": root], executable: program) {
            Issue.record("an app asks nobody")
            return nil
        }
        #expect(containers.url(of: "group.a")?.path == "\(root)/Containers/Group/\(first)")
        #expect(containers.url(of: "group.b")?.path == "\(root)/Containers/Group/\(second)")
        #expect(containers.url(of: "group.c") == nil, "the bundle does not list it")
    }

    @Test("A container that is not there is found as soon as the service has made it, and nobody else makes one")
    func made() throws {
        let folder = try TemporaryFolder()
        let program = try makeBundle(folder, "X.app", groups: ["group.a"])
        let root = folder.url.path + "/device"
        let containers = GroupContainers(environment: ["BACKGROUNDASSETS_DEVICE": root], executable: program) { nil }
        #expect(containers.url(of: "group.a") == nil)
        #expect(!FileManager.default.fileExists(atPath: root))
        // A name without the random part is nobody's.
        _ = try folder.file("device/Containers/Group/group.a/file", "")
        #expect(containers.url(of: "group.a") == nil)
        let name = ContainerFolders.name(of: "group.a", 1, 2)
        _ = try folder.file("device/Containers/Group/\(name)/file", "")
        #expect(containers.url(of: "group.a")?.path == "\(root)/Containers/Group/\(name)")
    }

    @Test("An extension is told the folders of its groups")
    func appExtension() throws {
        let folder = try TemporaryFolder()
        let program = try makeBundle(folder, "X.app/Extensions/Y.appex", groups: ["group.a", "group.b"])
        let containers = GroupContainers(environment: ["BACKGROUNDASSETS_EXTENSION": "1"], executable: program) {
            ManagerInterface.Identity.Reply(
                app: "x", role: "extension",
                groups: [.init(identifier: "group.a", container: "/device/root/a")], root: "/device/root")
        }
        #expect(containers.url(of: "group.a")?.path == "/device/root/a")
        // The app does not list it.
        #expect(containers.url(of: "group.b") == nil)
    }

    @Test("A process that declares an app has the groups the service names; it asks again after a failure")
    func declared() {
        let asked = Guarded(0)
        let containers = GroupContainers(environment: ["BACKGROUNDASSETS_APP": "x"], executable: "/usr/bin/test") {
            let count = asked.withLock { count in
                count += 1
                return count
            }
            return count == 1
                ? nil
                : ManagerInterface.Identity.Reply(
                    app: "x", role: "app", groups: [.init(identifier: "group.a", container: "/r/a")], root: "/r")
        }
        #expect(containers.url(of: "group.a") == nil)
        #expect(containers.url(of: "group.a")?.path == "/r/a")
        #expect(containers.url(of: "group.b") == nil)
        #expect(asked.withLock { $0 } == 2)
    }

    @Test("A process outside a bundle has no groups")
    func noBundle() {
        let containers = GroupContainers(environment: ["HOME": "/home/x"], executable: "/usr/bin/test") { nil }
        #expect(containers.url(of: "group.a") == nil)
    }

    @Test(
        "A group that is no folder's name has no container",
        arguments: ["", ".", "..", "../x", "a/b", "/", "a\0b", String(repeating: "a", count: 256)])
    func names(group: String) throws {
        let folder = try TemporaryFolder()
        let program = try makeBundle(folder, "X.app", groups: ["..", ".", "", "../x", "a/b", "/"])
        let containers = GroupContainers(
            environment: ["BACKGROUNDASSETS_DEVICE": folder.url.path], executable: program
        ) { nil }
        #expect(containers.url(of: group) == nil)
    }

    @Test(
        "Broken entitlements give no groups",
        arguments: ["", "not a list", "<plist><array/></plist>", "bplist00\u{1}\u{2}"])
    func broken(content: String) throws {
        let folder = try TemporaryFolder()
        _ = try folder.file("X.app/Entitlements.plist", content)
        #expect(BundleEntitlements(executable: folder.url.path + "/X.app/program").groups == [])
    }
}
