// Programs that tests start, and directories they work in.
import AssetsOS
import CLinux
import Glibc

/// A fresh directory that is removed with its last reference.
final class TestDirectory: Sendable {
    let path: String

    init() throws {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array((base + "/transfer-test-XXXXXX").utf8CString)
        guard let made = mkdtemp(&template) else { throw SystemCallError(call: "mkdtemp", number: errno) }
        path = String(cString: made)
    }

    deinit {
        let parent = path.split(separator: "/").dropLast().joined(separator: "/")
        let name = String(path.split(separator: "/").last ?? "")
        try? DeviceTree(root: "/" + parent).remove(name)
    }
}

/// A child process; ended and reaped at the latest with its last reference.
final class TestProcess {
    private var pid: pid_t = 0

    /// `descriptor` becomes number 3 of the child; no other one goes with it.
    init(_ program: String, _ arguments: [String], environment: [String] = [], descriptor: Int32? = nil, log: String)
        throws
    {
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDONLY | O_CLOEXEC) })
        let output = Descriptor(
            owning: try check("open") { open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) })
        let descriptors = [null.rawValue, output.rawValue, output.rawValue] + (descriptor.map { [$0] } ?? [])
        let argv = ([program] + arguments).map { strdup($0) } + [nil]
        let envp = (["PATH=/usr/sbin:/usr/bin:/sbin:/bin"] + environment).map { strdup($0) } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        var pidfd: Int32 = -1
        let code = argv.withUnsafeBufferPointer { argv in
            envp.withUnsafeBufferPointer { envp in
                descriptors.withUnsafeBufferPointer { descriptors in
                    var spawn = clinux_spawn()
                    spawn.path = argv[0].map { UnsafePointer($0) }
                    spawn.arguments = argv.baseAddress
                    spawn.environment = envp.baseAddress
                    spawn.descriptors = descriptors.baseAddress
                    spawn.descriptor_count = Int32(descriptors.count)
                    spawn.directory = -1
                    return clinux_spawn(&spawn, &pid, &pidfd)
                }
            }
        }
        guard code == 0 else { throw SystemCallError(call: "execve", number: errno) }
        if pidfd >= 0 { close(pidfd) }
    }

    /// Waits for the end; returns the status of waitpid.
    @discardableResult
    func wait() -> Int32 {
        var status: Int32 = 0
        guard pid > 0 else { return 0 }
        while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
        pid = 0
        return status
    }

    func end(_ signal: Int32) {
        guard pid > 0 else { return }
        kill(pid, signal)
        wait()
    }

    deinit { end(SIGKILL) }
}

/// A listening socket of 127.0.0.1 on a port that the kernel picks; it takes connections at once.
func listenOnLoopback() throws -> (descriptor: Int32, port: UInt16) {
    let fd = try check("socket") { socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    try withUnsafeMutablePointer(to: &address) { pointer in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
            _ = try check("bind") { bind(fd, generic, length) }
            _ = try check("getsockname") { getsockname(fd, generic, &length) }
        }
    }
    _ = try check("listen") { listen(fd, 64) }
    return (fd, address.sin_port.bigEndian)
}
