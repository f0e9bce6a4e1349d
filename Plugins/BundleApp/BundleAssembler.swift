// Puts the parts of a bundle where they belong.
import Foundation

/// Makes one app bundle. It appears whole under its name, in place of an older one, or not at all.
final class BundleAssembler {
    private let app: BundlePart
    private let downloader: BundlePart?
    private let output: URL
    private let strip: URL?
    private let resources: [URL]
    private let libraries: LibraryClosure
    private let includesRuntime: Bool
    private let files = FileManager.default

    /// What the bundle expects where it is installed.
    var systemLibraries: [String] { libraries.system }

    init(
        app: BundlePart, downloader: BundlePart?, output: URL, includesRuntime: Bool, strip: URL?, resources: [URL]
    ) throws {
        self.app = app
        self.downloader = downloader
        self.output = output
        self.includesRuntime = includesRuntime
        self.strip = strip
        self.resources = resources
        libraries = try LibraryClosure(of: [app.built] + (downloader.map { [$0.built] } ?? []))
    }

    func assemble() throws -> URL {
        let name = app.product + ".app"
        let bundle = output.appending(path: name, directoryHint: .isDirectory)
        let partial = output.appending(path: ".\(name).\(UUID().uuidString)", directoryHint: .isDirectory)
        do {
            try files.createDirectory(at: partial, withIntermediateDirectories: true)
        } catch {
            throw BundleError(
                "\(output.path) cannot be written (\(error.localizedDescription))",
                "name another folder with --output")
        }
        defer { try? files.removeItem(at: partial) }
        try fill(partial)
        if files.fileExists(atPath: bundle.path) { try files.removeItem(at: bundle) }
        try files.moveItem(at: partial, to: bundle)
        return bundle
    }

    private func fill(_ bundle: URL) throws {
        try put(app, in: bundle)
        if let downloader {
            try put(downloader, in: bundle.appending(path: "Extensions/\(downloader.product).appex"))
        }
        let frameworks = bundle.appending(path: "Frameworks")
        try files.createDirectory(at: frameworks, withIntermediateDirectories: true)
        for library in libraries.built {
            let copy = frameworks.appending(path: library.name)
            try copyProgram(library.url, to: copy)
            try setLibraryPath("$ORIGIN", of: copy)
        }
        // The runtime's libraries find each other as they are.
        for library in includesRuntime ? libraries.runtime : [] {
            try copyProgram(library.url, to: frameworks.appending(path: library.name))
        }
        for resource in resources {
            try copy(resource, to: bundle.appending(path: resource.lastPathComponent), "give a path that exists")
        }
    }

    private func put(_ part: BundlePart, in folder: URL) throws {
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        try part.info.write(to: folder.appending(path: "Info.plist"))
        try part.entitlements.write(to: folder.appending(path: "Entitlements.plist"))
        let executable = folder.appending(path: part.executable)
        try copyProgram(part.built, to: executable)
        try setLibraryPath(part.kind.libraryPath, of: executable)
        for resource in try builtResources(of: part) {
            try copy(resource, to: folder.appending(path: resource.lastPathComponent), "build again")
        }
    }

    /// The folders that the package manager makes of resources: `<package>_<target>.resources`.
    private func builtResources(of part: BundlePart) throws -> [URL] {
        try files.contentsOfDirectory(at: part.built.deletingLastPathComponent(), includingPropertiesForKeys: nil)
            .filter { url in
                url.pathExtension == "resources"
                    && part.targets.contains { url.deletingPathExtension().lastPathComponent.hasSuffix("_\($0)") }
            }
    }

    private func copy(_ source: URL, to target: URL, _ remedy: String) throws {
        guard !files.fileExists(atPath: target.path) else {
            throw BundleError(
                "\(target.lastPathComponent) is in the bundle already", "give \(source.path) another name")
        }
        do {
            try files.copyItem(at: source, to: target)
        } catch {
            throw BundleError("\(source.path) cannot be copied (\(error.localizedDescription))", remedy)
        }
    }

    /// Copies an executable or library, without debug information where that is wished, writable by its owner.
    private func copyProgram(_ source: URL, to copy: URL) throws {
        // A library's name may be a link to the file of its version.
        let file = source.resolvingSymlinksInPath()
        if let strip {
            try Command.run(strip, ["--strip-debug", file.path, copy.path])
        } else {
            try self.copy(file, to: copy, "build again")
        }
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: copy.path)
    }

    /// Makes a copy look for libraries in the bundle and nowhere else. Without the runtime it goes on looking where it
    /// was built, too.
    private func setLibraryPath(_ path: String, of copy: URL) throws {
        var file = try ELFFile(copy)
        let wanted = ([path] + (includesRuntime ? [] : file.absoluteLibraryPaths)).joined(separator: ":")
        guard file.libraryPath != wanted else { return }
        guard file.setLibraryPath(wanted) else {
            throw BundleError(
                "\(copy.lastPathComponent) has no room for the library path \(wanted)",
                "link it with -rpath=\(BundlePart.Kind.appExtension.libraryPath)")
        }
        try file.write(to: copy)
    }
}
