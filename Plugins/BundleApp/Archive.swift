// Packing a bundle, and running the programs that do.
import Foundation

/// A form in which a bundle is published.
enum ArchiveFormat: String {
    case zip
    case tarZstandard = "tar.zst"

    /// Packs a bundle into an archive beside it. It appears whole, in place of an older one, or not at all.
    func pack(_ bundle: URL) throws -> URL {
        let folder = bundle.deletingLastPathComponent()
        let name = bundle.lastPathComponent
        let archive = folder.appending(path: "\(bundle.deletingPathExtension().lastPathComponent).\(rawValue)")
        let partial = folder.appending(path: ".\(UUID().uuidString).\(rawValue)")
        defer { try? FileManager.default.removeItem(at: partial) }
        switch self {
        case .zip:
            try Command.run(Command.find("zip"), ["-q", "-r", "-X", partial.path, name], in: folder)
        case .tarZstandard:
            // Fixed order and owners: the same bundle gives the same archive.
            _ = try Command.find("zstd")
            try Command.run(
                Command.find("tar"),
                [
                    "--create", "--file", partial.path, "--use-compress-program", "zstd -q -T0", "--format=pax",
                    "--sort=name", "--owner=0", "--group=0", "--numeric-owner",
                    "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", name,
                ], in: folder)
        }
        guard rename(partial.path, archive.path) == 0 else {
            throw BundleError("\(archive.path) cannot be written", "remove what is there")
        }
        return archive
    }
}

/// Other programs.
enum Command {
    static func find(_ name: String) throws -> URL {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
        let found = folders.map { URL(filePath: String($0)).appending(path: name) }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        guard let found else { throw BundleError("'\(name)' is not in PATH", "install the package \(name)") }
        return found
    }

    static func run(_ program: URL, _ arguments: [String], in folder: URL? = nil) throws {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BundleError(
                "\(program.lastPathComponent) ended with status \(process.terminationStatus)", "see what it says above")
        }
    }
}
