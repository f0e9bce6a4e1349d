// What the kernel tells of processes and ports.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc
internal import Synchronization

enum Machine {
    /// Memory of a process that is its own: RssAnon, in bytes.
    static func anonymousMemory(of process: Int32) throws -> Int {
        for line in try Folder.text("/proc/\(process)/status").split(separator: "\n") where line.hasPrefix("RssAnon:") {
            let fields = line.split { $0 == " " || $0 == "\t" }
            if fields.count == 3, let kibibytes = Int(fields[1]) { return kibibytes << 10 }
        }
        throw BenchError("the kernel does not tell the memory of process \(process)")
    }

    /// How often a thread of a process went to sleep, and so had to be woken. The main thread has the process's number.
    static func sleeps(of process: Int32, thread: Int32) throws -> Int {
        let path = "/proc/\(process)/task/\(thread)/status"
        for line in try Folder.text(path).split(separator: "\n") where line.hasPrefix("voluntary_ctxt_switches:") {
            if let field = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).last, let count = Int(field) {
                return count
            }
        }
        throw BenchError("the kernel does not tell how often thread \(thread) of process \(process) slept")
    }

    /// Connections to a port of 127.0.0.1 that its server has not closed.
    static func connections(to port: UInt16) throws -> Int {
        let (established, closing) = ("01", "08")
        let suffix = ":" + String(repeating: "0", count: 4 - String(port, radix: 16).count) + String(port, radix: 16)
        return try Folder.text("/proc/net/tcp").split(separator: "\n").dropFirst().count { line in
            let fields = line.split(separator: " ")
            return fields.count > 3 && fields[1].lowercased().hasSuffix(suffix)
                && [established, closing].contains(String(fields[3]))
        }
    }

    /// What the processes of a group have used of the processors, in user and kernel mode.
    static func processorTime(ofGroup group: Int32) throws -> Duration {
        guard let folder = opendir("/proc") else { throw SystemCallError(call: "opendir", number: errno) }
        defer { closedir(folder) }
        var ticks = 0
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            // It may be gone by now.
            guard Int32(name) != nil, let text = try? Folder.text("/proc/\(name)/stat"),
                let fields = text.split(separator: ")").last?.split(separator: " "), fields.count > 12,
                Int32(fields[2]) == group
            else { continue }
            ticks += (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
        }
        return .seconds(ticks) / sysconf(Int32(_SC_CLK_TCK))
    }

    /// What programs that have ended, and that we waited for, have used of the processors.
    static var childrenTime: Duration {
        var usage = rusage()
        getrusage(RUSAGE_CHILDREN.rawValue, &usage)
        let times = [usage.ru_utime, usage.ru_stime]
        return times.reduce(.zero) { $0 + .seconds($1.tv_sec) + .microseconds($1.tv_usec) }
    }

    /// The threads of a process, its main thread first.
    static func threads(of process: Int32) throws -> [Int32] {
        guard let folder = opendir("/proc/\(process)/task") else {
            throw SystemCallError(call: "opendir", number: errno)
        }
        defer { closedir(folder) }
        var threads: [Int32] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let thread = Int32(name) { threads.append(thread) }
        }
        return threads.sorted()
    }
}

/// Watches the memory of a process from a thread of its own.
final class MemoryWatch: Sendable {
    private static let interval: useconds_t = 2_000

    private let process: Int32
    private let peak = Atomic(0)
    private let isEnded = Atomic(false)
    private let hasLeft = Atomic(false)

    init(_ process: Int32) throws {
        self.process = process
        try SideThread.start { self.run() }
    }

    private func run() {
        while !isEnded.load(ordering: .acquiring) {
            if let now = try? Machine.anonymousMemory(of: process) { peak.max(now, ordering: .relaxed) }
            usleep(Self.interval)
        }
        hasLeft.store(true, ordering: .releasing)
    }

    /// Ends watching and returns the most that was seen, in bytes.
    func end() -> Int {
        isEnded.store(true, ordering: .releasing)
        while !hasLeft.load(ordering: .acquiring) { usleep(Self.interval) }
        return peak.load(ordering: .relaxed)
    }
}

/// A port of this machine where connections are taken by the kernel and by nobody else.
struct SilentPort: ~Copyable {
    private let socket: Descriptor
    let port: UInt16

    /// - Parameter backlog: connections that can be made before the kernel, too, falls silent.
    init(backlog: Int32 = 1024) throws {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let socket = Descriptor(owning: try check("socket") { Glibc.socket(AF_INET, type, 0) })
        let fd = socket.rawValue
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try check("bind") { bind(fd, address, length) }
                try check("listen") { listen(fd, backlog) }
                try check("getsockname") { getsockname(fd, address, &length) }
            }
        }
        self.socket = socket
        port = UInt16(bigEndian: address.sin_port)
    }

    /// Its listening socket; the caller takes the connections from now on, and closes it.
    consuming func intoSocket() -> Int32 { socket.release() }

    /// A port that was free a moment ago.
    static func free() throws -> UInt16 { try SilentPort(backlog: 0).port }

    /// True when somebody listens there.
    static func answers(_ port: UInt16) -> Bool {
        let fd = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard fd >= 0 else { return false }
        defer { close(fd) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
