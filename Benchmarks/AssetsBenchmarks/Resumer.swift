// Downloaders that are killed and go on: ours and those that people use.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// A file to be fetched.
struct WantedFile {
    /// Not used before.
    var name: String
    var url: String
    var size: Int
}

/// Somebody who fetches files and can be killed meanwhile.
protocol Resumer: AnyObject {
    var name: String { get }
    func begin(_ files: [WantedFile]) throws
    /// Returns when all of its processes are dead.
    func kill() throws
    /// Starts again, as after a crash.
    func goOn() throws
    /// Waits until it is done, well or not.
    func finish(within limit: Duration) throws
    /// Bytes of the partial file; 0 where there is none.
    func length(of file: WantedFile) -> Int64
    /// The finished file; nil where it has given up.
    func result(of file: WantedFile) -> String?
    /// Removes what it has fetched.
    func clear(_ files: [WantedFile])
}

/// The service, with downloads of an installed app.
final class ServiceResumer: Resumer {
    private static let look: useconds_t = 1_000
    let name = "us"
    private let device: PrivateDevice
    private let kept: String
    private var ids: [String: String] = [:]
    private var waiting: [WantedFile] = []
    private let random = SystemRandomSource()

    /// `nginx` has an empty manifest for the installation.
    init(folder: String, device: PrivateDevice, nginx: Nginx) throws {
        self.device = device
        try Folder.write("", to: nginx.site + "/manifest.txt")
        let bundle = try BenchBundle(in: folder, manifestURL: nginx.baseURL + "/manifest.txt")
        try device.install(bundle.path)
        kept = try device.container(of: BenchBundle.group) + "/Assets"
        try Folder.make(kept)
    }

    func begin(_ files: [WantedFile]) throws {
        let connection = try WireControl.declared(device)
        defer { connection.close() }
        waiting = files
        for file in files {
            ids[file.name] = random.uuid()
            _ = try connection.call(ManagerInterface.Schedule.self, .init(download: download(of: file)))
        }
    }

    /// As the app describes it to the service.
    func download(of file: WantedFile) -> WireDownload {
        WireDownload(
            identifier: file.name, uniqueIdentifier: ids[file.name] ?? "", url: file.url, method: "GET", headers: [],
            body: "", group: BenchBundle.group, essential: false, size: Int64(file.size), priority: 0, kind: "url",
            state: 0)
    }

    /// Where its bytes are until it is finished.
    func partial(of file: WantedFile) -> String { "\(device.root)/Transfers/\(ids[file.name] ?? "").partial" }

    func kill() throws { device.end(SIGKILL) }

    func goOn() throws { try device.start() }

    func finish(within limit: Duration) throws {
        let deadline = Deadline(in: limit)
        while let file = waiting.first(where: { result(of: $0) == nil }) {
            guard !deadline.hasPassed else {
                throw BenchError("\(file.name) did not come within \(limit): \(try device.lastRows())")
            }
            usleep(Self.look)
        }
    }

    func length(of file: WantedFile) -> Int64 {
        (try? Folder.size(partial(of: file))).map(Int64.init) ?? 0
    }

    func result(of file: WantedFile) -> String? {
        let path = "\(kept)/\(file.name)"
        return access(path, F_OK) == 0 ? path : nil
    }

    func clear(_ files: [WantedFile]) { for file in files { unlink("\(kept)/\(file.name)") } }
}

/// Several of one kind that share the files, since one alone would not fetch them all at once.
final class ResumerTeam: Resumer {
    let name: String
    private let members: [any Resumer]
    private var owners: [String: any Resumer] = [:]

    init(_ members: [any Resumer]) {
        self.members = members
        name = members.first?.name ?? ""
    }

    func begin(_ files: [WantedFile]) throws {
        for (index, member) in members.enumerated() {
            let share = files.enumerated().filter { $0.offset % members.count == index }.map(\.element)
            for file in share { owners[file.name] = member }
            try member.begin(share)
        }
    }

    func kill() throws { for member in members { try member.kill() } }
    func goOn() throws { for member in members { try member.goOn() } }
    func finish(within limit: Duration) throws { for member in members { try member.finish(within: limit) } }
    func length(of file: WantedFile) -> Int64 { owners[file.name]?.length(of: file) ?? 0 }
    func result(of file: WantedFile) -> String? { owners[file.name]?.result(of: file) }
    func clear(_ files: [WantedFile]) { for file in files { owners.removeValue(forKey: file.name)?.clear([file]) } }
}

/// A tool that fetches one file and ends.
final class ToolResumer: Resumer {
    /// Starts of one download; a tool that fails so often has given up.
    private static let startsMax = 5

    let name: String
    private let program: String
    private let arguments: (WantedFile, String) -> [String]
    private let folder: String
    private let log: String
    /// With which it is ended.
    private let signal: Int32
    private var files: [WantedFile] = []
    private var running: [String: Program] = [:]
    private var done: Set<String> = []

    private init(
        _ name: String, folder: String, log: String, signal: Int32,
        arguments: @escaping (WantedFile, String) -> [String]
    ) throws {
        self.name = name
        self.signal = signal
        self.folder = folder
        self.log = log
        self.arguments = arguments
        program = try Program.find(name.split(separator: " ").first.map(String.init) ?? name)
        try Folder.make(folder)
    }

    /// As people continue with curl.
    static func curl(
        folder: String, authority: String, log: String, endedBy signal: Int32 = SIGKILL
    ) throws -> ToolResumer {
        try ToolResumer("curl -C -", folder: folder, log: log, signal: signal) { file, folder in
            ["-q", "-s", "-S", "-f", "--cacert", authority, "-C", "-", "-o", "\(folder)/\(file.name)", file.url]
        }
    }

    /// As people continue with aria2. Files are not allocated ahead, so that their length says what is there.
    static func aria2(
        folder: String, authority: String, log: String, endedBy signal: Int32 = SIGKILL
    ) throws -> ToolResumer {
        try ToolResumer("aria2c -c", folder: folder, log: log, signal: signal) { file, folder in
            [
                "--no-conf", "--quiet", "-c", "--ca-certificate=\(authority)", "--file-allocation=none", "-d", folder,
                "-o", file.name, file.url,
            ]
        }
    }

    func begin(_ files: [WantedFile]) throws {
        self.files = files
        done = []
        try goOn()
    }

    func kill() throws {
        for file in files {
            if let exit = running.removeValue(forKey: file.name)?.end(signal) { note(exit, of: file) }
        }
    }

    func goOn() throws { for file in files where !done.contains(file.name) { try start(file) } }

    func finish(within limit: Duration) throws {
        for file in files {
            for _ in 1...Self.startsMax where !done.contains(file.name) {
                if running[file.name] == nil { try start(file) }
                if let exit = try running.removeValue(forKey: file.name)?.wait(within: limit) { note(exit, of: file) }
            }
        }
    }

    func length(of file: WantedFile) -> Int64 { (try? Folder.size(path(of: file))).map(Int64.init) ?? 0 }

    func result(of file: WantedFile) -> String? { done.contains(file.name) ? path(of: file) : nil }

    func clear(_ files: [WantedFile]) {
        for file in files {
            unlink(path(of: file))
            unlink(path(of: file) + ".aria2")
        }
    }

    private func start(_ file: WantedFile) throws {
        running[file.name] = try Program(program, arguments(file, folder), log: log)
    }

    private func note(_ exit: ChildExit, of file: WantedFile) { if exit.isSuccess { done.insert(file.name) } }

    private func path(of file: WantedFile) -> String { "\(folder)/\(file.name)" }
}
