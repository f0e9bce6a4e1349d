// Folders and files of a test, and the processes that belong to them.
import AssetsOS
import Foundation
import Glibc

/// A new folder that is removed with everything below it.
final class TestFolder: Sendable {
    let path: String

    init() throws {
        let base = ProcessEnvironment.value("TMPDIR", in: ProcessEnvironment.current) ?? "/tmp"
        var template = Array((base + "/it-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw HarnessError("mkdtemp: \(String(cString: strerror(errno)))") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

enum Files {
    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// Names in a folder, sorted; none where it is missing.
    static func names(in path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
    }

    /// Paths of all files below a folder, relative to it, sorted.
    static func below(_ path: String) -> [String] {
        (FileManager.default.subpaths(atPath: path) ?? []).filter {
            var status = stat()
            return lstat(path + "/" + $0, &status) == 0 && status.st_mode & S_IFMT != S_IFDIR
        }.sorted()
    }

    static func read(_ path: String) -> Data? { FileManager.default.contents(atPath: path) }

    static func write(_ path: String, _ data: Data) throws {
        try makeFolder((path as NSString).deletingLastPathComponent)
        try data.write(to: URL(fileURLWithPath: path))
    }

    /// Copies an executable by another process: nobody can execute it while this one has it open for writing, or while
    /// one does that was started meanwhile and has inherited that.
    static func copyProgram(_ path: String, to copy: String) throws {
        let child = try ChildProcess(
            ProgramStart(path: "/bin/cp", arguments: [path, copy], environment: ProcessEnvironment.current))
        guard child.wait().isSuccess else { throw HarnessError("\(path) was not copied") }
    }

    static func makeFolder(_ path: String) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
}

/// Bytes that no compression and no accident makes equal, the same for one seed.
func randomBytes(_ count: Int, seed: UInt64) -> Data {
    var state = seed
    var data = Data(capacity: count + 8)
    while data.count < count {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        mixed ^= mixed >> 31
        withUnsafeBytes(of: mixed) { data.append(contentsOf: $0) }
    }
    return data.prefix(count)
}

/// Processes as /proc shows them.
enum Processes {
    /// Those whose executable or arguments name something in a folder, without the test's own.
    static func using(_ folder: String) -> [Int32] {
        Files.names(in: "/proc").compactMap { Int32($0) }.filter { process in
            guard process != getpid(), state(of: process).map({ $0 != "Z" && $0 != "X" }) == true else { return false }
            return executable(of: process).hasPrefix(folder + "/") || commandLine(of: process).contains(folder)
        }.sorted()
    }

    static func executable(of process: Int32) -> String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe")) ?? ""
    }

    static func commandLine(of process: Int32) -> String {
        Files.read("/proc/\(process)/cmdline").map {
            String(decoding: $0.map { $0 == 0 ? 32 : $0 }, as: UTF8.self)
        } ?? ""
    }

    /// R, S, D, T, Z ...; nil when there is no such process.
    static func state(of process: Int32) -> Character? {
        guard let text = Files.read("/proc/\(process)/stat").map({ String(decoding: $0, as: UTF8.self) }),
            let end = text.lastIndex(of: ")")
        else { return nil }
        return text[text.index(after: end)...].first { $0 != " " }
    }

    static func children(of process: Int32) -> [Int32] {
        Files.names(in: "/proc").compactMap { Int32($0) }.filter { child in
            guard let text = Files.read("/proc/\(child)/stat").map({ String(decoding: $0, as: UTF8.self) }),
                let end = text.lastIndex(of: ")")
            else { return false }
            let fields = text[text.index(after: end)...].split(separator: " ")
            return fields.count > 1 && fields[1] == String(process)
        }
    }

    /// Waits until a process is gone that is not our child.
    static func gone(_ process: Int32, within limit: Duration = .seconds(120)) async throws {
        try await blocking {
            let descriptor = pidfd(process)
            guard descriptor >= 0 else { return }
            defer { close(descriptor) }
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&watched, 1, Int32(limit / .milliseconds(1))) == 1 else {
                throw HarnessError("process \(process) did not end: \(commandLine(of: process))")
            }
        }
    }
}
