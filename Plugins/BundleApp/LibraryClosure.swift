// Which libraries a bundle has to carry.
import Foundation

/// The libraries that executables need, and those need in turn.
struct LibraryClosure {
    struct Library {
        let name: String
        let url: URL
    }

    /// Libraries that the package itself builds.
    private(set) var built: [Library] = []
    /// Libraries of the Swift runtime.
    private(set) var runtime: [Library] = []
    /// Names of libraries that neither the package nor the toolchain has, such as the C library.
    private(set) var system: [String] = []

    /// Follows what each file says it needs, from the executables on.
    init(of executables: [URL]) throws {
        let buildFolders = Set(executables.map { $0.deletingLastPathComponent().path }).sorted()
        var runtimeFolders: [String] = []
        var waiting: [String] = []
        for executable in executables {
            let file = try ELFFile(executable)
            waiting += file.needed
            // The compiler has put the toolchain's folder there.
            runtimeFolders += file.absoluteLibraryPaths.filter { !runtimeFolders.contains($0) }
        }
        var seen: Set<String> = []
        while let name = waiting.popLast() {
            guard seen.insert(name).inserted else { continue }
            if let url = Self.find(name, in: buildFolders) {
                built.append(Library(name: name, url: url))
                waiting += try ELFFile(url).needed
            } else if let url = Self.find(name, in: runtimeFolders) {
                runtime.append(Library(name: name, url: url))
                waiting += try ELFFile(url).needed
            } else {
                system.append(name)
            }
        }
        system.sort()
        guard runtime.isEmpty == false || !seen.contains("libswiftCore.so") else {
            throw BundleError(
                "the Swift runtime was not found in \(runtimeFolders.joined(separator: ", "))",
                "check the toolchain, or link with -static-stdlib")
        }
    }

    private static func find(_ name: String, in folders: [String]) -> URL? {
        folders.lazy.map { URL(filePath: $0).appending(path: name) }
            .first { FileManager.default.fileExists(atPath: $0.path) }
    }
}
