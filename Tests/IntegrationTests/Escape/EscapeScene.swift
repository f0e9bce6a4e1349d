// What there is around an extension whose probe runs: a device with other apps, files outside, and a bystander that
// listens. All of it is looked at again when the probe has ended.
import AssetsOS
import CLinux
import Foundation
import Glibc

/// A device folder without a service, and a world around it, for one run of one probe.
final class EscapeScene {
    private static let identifier = "org.example.escape.extension"
    private static let group = "group.org.example.escape"
    /// Of the other app, which anybody may know.
    private static let otherIdentifier = "org.example.other.extension"
    private static let otherGroup = "group.org.example.other"
    /// These lie below the device's folder.
    private static let app = "Applications/org.example.escape/1/Escape.app"
    static let appex = app + "/Extensions/Downloader.appex"
    static let executable = appex + "/EscapeExtension"

    private let root: String
    private let bystander: EscapeBystander
    private var before: [String: FileState] = [:]

    let device: String
    /// Of the extension and of its group, below the device's folder.
    let extensionContainer: String
    let groupContainer: String
    let home: String
    let temporary: String
    let container: String
    private let otherGroup: String
    private let otherHome: String
    let appFolder: String
    let bundle: String
    let program: String
    let outside: String
    var library: String { outside + "/library.so" }

    /// - Parameters:
    ///   - root: A folder; scenes in it follow one another.
    ///   - libraries: Paths of libraries of probes that go into the bundle.
    init(in root: String, libraries: [String]) throws {
        self.root = root
        device = root + "/device"
        outside = root + "/outside"
        appFolder = device + "/" + Self.app
        bundle = device + "/" + Self.appex
        program = device + "/" + Self.executable
        var folders = ContainerFolders()
        let random = SystemRandomSource()
        extensionContainer = folders.folder(.appExtension, of: Self.identifier, random: random)
        groupContainer = folders.folder(.group, of: Self.group, random: random)
        home = "\(device)/\(extensionContainer)/home"
        temporary = "\(device)/\(extensionContainer)/tmp"
        container = "\(device)/\(groupContainer)"
        otherGroup = folders.folder(.group, of: Self.otherGroup, random: random)
        otherHome = folders.folder(.appExtension, of: Self.otherIdentifier, random: random) + "/home"
        try Self.clear(root)
        try Files.makeFolder(device)
        let name = "escape-\(getpid())-\(root.suffix(6))"
        bystander = try EscapeBystander(socket: device + "/service.socket", name: name)
        try makeDevice(libraries: libraries)
        try makeOutside()
    }

    /// Makes the extension's own folders as empty as they were.
    func clearOwnFolders() throws {
        for folder in [home, temporary, container] {
            try FileManager.default.removeItem(atPath: folder)
            try Files.makeFolder(folder)
        }
    }

    func remove() {
        bystander.end()
        try? Self.clear(root)
    }

    private static func clear(_ root: String) throws {
        for folder in ["/device", "/outside"] where Files.exists(root + folder) {
            try FileManager.default.removeItem(atPath: root + folder)
        }
    }

    private func makeDevice(libraries: [String]) throws {
        let own = "\(device)/\(extensionContainer)"
        for folder in [home, temporary, own + "/Manifests", container, bundle, appFolder + "/Frameworks"] {
            try Files.makeFolder(folder)
        }
        for (path, text) in [
            "device.sqlite": "rows of others", "Transfers/transfer.partial": "bytes", "DevelopmentCA/key.pem": "a key",
            "\(otherGroup)/file": "of another app", "\(otherHome)/file": "too", "\(extensionContainer)/.lock": "",
            "Applications/other/1/Other.app/Info.plist": "another app", "\(Self.app)/Info.plist": "the app",
        ] { try Files.write(device + "/" + path, Data(text.utf8)) }
        try Files.write(bundle + "/Info.plist", Data("the extension".utf8))
        try Files.copyProgram(Products.folder + "/EscapeExtension", to: program)
        for library in libraries {
            let name = (library as NSString).lastPathComponent
            try Files.makeFolder(bundle + "/Probes")
            try FileManager.default.copyItem(atPath: library, toPath: bundle + "/Probes/" + name)
        }
    }

    private func makeOutside() throws {
        let secret = outside + "/secret"
        try Files.write(secret, Data("secret".utf8))
        chmod(secret, 0o600)
        let file = Descriptor(owning: try check("open") { open(secret, O_RDWR | O_CLOEXEC) })
        try check("fsetxattr") { clinux_set_attribute(file.rawValue, "user.mark", "1", 1) }
        try check("symlink") { symlink("secret", outside + "/link") }
        try check("mkfifo") { mkfifo(outside + "/fifo", 0o600) }
        try Files.makeFolder(outside + "/folder")
        try FileManager.default.copyItem(atPath: Products.folder + "/libEscapeSample.so", toPath: library)
    }

    // MARK: The request

    /// Writes what the extension is to do, and remembers everything around it.
    func ask(_ probe: String, _ moment: EscapeMoment) throws {
        let values: KeyValuePairs = [
            "probe": probe, "moment": moment.rawValue, "home": home, "temporary": temporary, "group": container,
            "bundle": bundle, "outside": outside, "secret": outside + "/secret", "link": outside + "/link",
            "fifo": outside + "/fifo", "folder": outside + "/folder", "library": library, "device": device,
            "database": device + "/device.sqlite", "service-socket": device + "/service.socket", "app": appFolder,
            "other-group": device + "/" + otherGroup, "other-home": device + "/" + otherHome,
            "other-group-identifier": Self.otherGroup, "other-extension-identifier": Self.otherIdentifier,
            "abstract-socket": bystander.name, "message-queue": "/" + bystander.name,
            "tcp-port": "\(bystander.tcpPort)", "udp-port": "\(bystander.udpPort)",
            "shared-memory": "\(bystander.sharedMemory)", "victim": "\(bystander.process)", "service": "\(getpid())",
        ]
        let text = values.map { "\($0) \($1)\n" }.joined()
        try Files.write(home + "/escape-request", Data(text.utf8))
        before = surroundings()
    }

    // MARK: Afterwards

    /// Everything that is no longer as it was, as sentences; empty after a denial.
    func damage() -> [String] {
        let after = surroundings()
        var result = bystander.damage()
        for path in Set(before.keys).union(after.keys).sorted() where before[path] != after[path] {
            switch (before[path], after[path]) {
            case (nil, _): result.append("\(path) was made")
            case (_, nil): result.append("\(path) is gone")
            case (let old?, let new?): result.append("\(path) changed: \(old.difference(to: new))")
            }
        }
        return result
    }

    /// Files and folders outside of what is the extension's own, by their place in the scene.
    private func surroundings() -> [String: FileState] {
        let own = [home, temporary, container]
        var result: [String: FileState] = [:]
        var open = [root]
        while let folder = open.popLast() {
            result[String(folder.dropFirst(root.count))] = FileState(folder)
            for name in Files.names(in: folder) {
                let path = folder + "/" + name
                guard !own.contains(path) else { continue }
                var status = stat()
                if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
                    open.append(path)
                } else {
                    result[String(path.dropFirst(root.count))] = FileState(path)
                }
            }
        }
        return result
    }
}

/// When a probe runs.
enum EscapeMoment: String, CaseIterable, Sendable {
    /// In the developer's code, where the second stage has been entered.
    case inside
    /// In a constructor, before the runtime's main.
    case before
    /// There, after the program has executed itself.
    case again
}

/// What can be changed of a file without being its owner's wish.
private struct FileState: Equatable {
    private let fields: [String: String]

    /// nil-like fields for what is gone in between.
    init(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            fields = [:]
            return
        }
        let kind = status.st_mode & S_IFMT
        var fields = [
            "inode": "\(status.st_ino)", "mode": String(status.st_mode, radix: 8),
            "owner": "\(status.st_uid):\(status.st_gid)", "names": "\(status.st_nlink)",
            "changed": "\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)",
            "written": "\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)",
        ]
        // Whoever opens a FIFO for writing sets its time; nobody has lost anything by that.
        if kind == S_IFREG { fields["size"] = "\(status.st_size)" }
        self.fields = fields
    }

    func difference(to other: Self) -> String {
        Set(fields.keys).union(other.fields.keys).sorted()
            .filter { fields[$0] != other.fields[$0] }
            .map { "\($0) \(fields[$0] ?? "-") to \(other.fields[$0] ?? "-")" }.joined(separator: ", ")
    }
}
