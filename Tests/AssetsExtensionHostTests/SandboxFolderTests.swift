// Which folders a box is made of: real paths, their links, and runtimes that an executable names.
import AssetsOS
import AssetsSandbox
import Foundation
import Glibc
import Testing

@testable import AssetsExtensionHost

@Suite struct SandboxFolderTests {
    /// A folder of the test's own, without links on the way.
    private func withFolder(_ body: (String) throws -> Void) throws {
        var template = Array("/tmp/ba-sandbox-XXXXXX".utf8CString)
        let path = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(try #require(PathTrail(path)?.real))
    }

    @Test("A path is followed through links to the real one, and the links are remembered in their order")
    func trail() throws {
        try withFolder { folder in
            for name in ["real", "real/inner"] { mkdir("\(folder)/\(name)", 0o700) }
            symlink("real", "\(folder)/link")
            symlink("\(folder)/link/inner", "\(folder)/absolute")
            symlink("loop", "\(folder)/loop")
            let trail = try #require(PathTrail("\(folder)/absolute/../inner"))
            #expect(trail.real == "\(folder)/real/inner" && trail.isFolder)
            #expect(
                trail.links == [
                    SandboxLink("\(folder)/absolute", to: "\(folder)/link/inner"),
                    SandboxLink("\(folder)/link", to: "real"),
                ])
            #expect(PathTrail("\(folder)/loop") == nil)
            #expect(PathTrail("\(folder)/missing") == nil)
            #expect(PathTrail("\(folder)//./real/")?.real == "\(folder)/real")
        }
    }

    @Test("The system's folders are there: a loader that may run, and libraries that may not")
    func system() throws {
        let grants = SystemFolders().grants
        let loader = try #require(grants.first { $0.use == .run })
        #expect(!loader.isFolder && loader.path.contains("ld-linux"))
        #expect(grants.contains { $0.use == .read && loader.path.hasPrefix($0.path + "/") })
        #expect(grants.allSatisfy { $0.path != "/" && !$0.path.hasPrefix("/etc/pass") && $0.use != .write })
    }

    @Test("The library path is read from a real executable, and from nonsense nothing and never a trap")
    func libraryPath() throws {
        let own = try #require(PathTrail("/proc/self/exe")?.real)
        let file = open(own, O_RDONLY | O_CLOEXEC)
        try #require(file >= 0)
        defer { close(file) }
        func bytes(_ offset: UInt64, _ count: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: count)
            let got = pread(file, &bytes, count, off_t(offset))
            return Array(bytes.prefix(max(0, got)))
        }
        let path = ElfLibraryPath.read(bytes)
        #expect(path.split(separator: ":").contains { $0.hasSuffix("/lib/swift/linux") || $0.hasPrefix("$ORIGIN") })
        #expect(ElfLibraryPath.read { _, _ in [] } == "")
        // The header and the tables behind it, damaged byte by byte.
        for place in 0..<1024 {
            for value: UInt8 in [0, 0x7F, 0xFF] {
                _ = ElfLibraryPath.read { offset, count in
                    var part = bytes(offset, count)
                    let index = place - Int(clamping: offset)
                    if part.indices.contains(index) { part[index] = value }
                    return part
                }
            }
        }
    }

    @Test("What is no executable, or names no runtime, grants nothing")
    func runtime() throws {
        #expect(SwiftRuntimeFolder.paths(of: "/bin/cat").isEmpty)
        #expect(SwiftRuntimeFolder.paths(of: "/etc/hostname").isEmpty)
        #expect(SwiftRuntimeFolder.paths(of: "/does/not/exist").isEmpty)
    }

    @Test("The lock of a container is held by whoever has it open, until the last one has closed it")
    func lock() throws {
        try withFolder { folder in
            let path = folder + "/.lock"
            let second = try ContainerLock(path: path)
            let inherited: Int32
            do {
                let first = try ContainerLock(path: path)
                #expect(try first.take())
                // As an extension has it.
                inherited = dup(first.descriptor.rawValue)
            }
            #expect(try !second.take())
            // An extension can do that to it, and to itself no harm.
            fchmod(inherited, 0)
            let third = try ContainerLock(path: path)
            #expect(try !third.take())
            close(inherited)
            #expect(try second.take())
        }
    }

    @Test("The call filter compiles, compares with the own process, and is short")
    func filter() throws {
        let filter = try CallFilter.compile()
        #expect(filter.count.isMultiple(of: 8) && filter.count / 8 < 1000)
        #expect(FilterProgram.replacing(SystemCallRule.ownProcess, with: 1, in: filter) != filter)
    }
}
