// Starting programs: exactly these descriptors, a clean state, and a handle to learn of their end.
internal import CLinux
internal import Glibc

/// What is to be started, and with what.
package struct ProgramStart: Sendable {
    /// Path of the executable; not searched for.
    package var path: String
    /// The arguments, without the program's name.
    package var arguments: [String]
    package var environment: [String: String]
    /// Become 0, 1, 2 ... in the program; all others are closed. At most 64.
    package var descriptors: [Int32]
    /// A folder to start in; nil for the caller's.
    package var directory: Int32?
    /// A new session; otherwise an own process group.
    package var newSession: Bool
    /// In namespaces of its own for users, mounts, networks, processes and shared memory. The program may change its
    /// mounts; it gives that up itself.
    package var inNamespaces: Bool

    package init(
        path: String, arguments: [String] = [], environment: [String: String] = [:], descriptors: [Int32] = [],
        directory: Int32? = nil, newSession: Bool = false, inNamespaces: Bool = false
    ) {
        self.path = path
        self.arguments = arguments
        self.environment = environment
        self.descriptors = descriptors
        self.directory = directory
        self.newSession = newSession
        self.inNamespaces = inNamespaces
    }
}

/// How a program ended.
package enum ChildExit: Hashable, Sendable, CustomStringConvertible {
    case exited(Int32)
    case killed(signal: Int32)

    package var isSuccess: Bool { self == .exited(0) }

    package var description: String {
        switch self {
        case .exited(let code): "exited with \(code)"
        case .killed(let signal): "killed by signal \(signal)"
        }
    }
}

/// A started program. Whoever has it reaps it, by `wait` or `whenEnded`, exactly once.
package struct ChildProcess: ~Copyable, Sendable {
    package let process: Int32
    /// The pidfd: readable once the program has ended.
    package let handle: Descriptor

    /// Starts a program; throws what execve says when it cannot run.
    package init(_ start: ProgramStart) throws(SystemCallError) {
        let (process, pidfd) = try spawn(start, detached: false)
        guard pidfd >= 0 else {
            // Without a handle nobody could tell its end from that of a stranger with its number.
            let number = errno
            kill(process, SIGKILL)
            _ = reap(process, 0)
            throw SystemCallError(call: "pidfd_open", number: number)
        }
        self.process = process
        handle = Descriptor(owning: pidfd)
    }

    /// Starts a program that is nobody's child: the system reaps it. It has a session of its own.
    package static func startDetached(_ start: ProgramStart) throws(SystemCallError) {
        var start = start
        start.newSession = true
        _ = try spawn(start, detached: true)
    }

    /// Sends a signal; none when it has been reaped.
    package borrowing func send(signal: Int32) throws(SystemCallError) {
        let raw = handle.rawValue
        do throws(SystemCallError) {
            try check("pidfd_send_signal") { clinux_pidfd_send_signal(raw, signal) }
        } catch {
            if error.number != ESRCH { throw error }
        }
    }

    /// Sends a signal to the program and everything in its process group.
    package borrowing func sendToGroup(signal: Int32) { _ = kill(-process, signal) }

    /// True while a signal has stopped it, with all its threads.
    package var isStopped: Bool {
        var info = siginfo_t()
        // Nothing is taken from the kernel, so that it can be asked again, and its end is left to `wait` and `whenEnded`.
        let flags = WSTOPPED | WNOHANG | Int32(WNOWAIT)
        return waitid(P_PID, id_t(process), &info, flags) == 0 && info.si_signo == SIGCHLD
    }

    /// Waits until it has ended.
    package borrowing func wait() -> ChildExit { reap(process, 0) ?? .exited(-1) }

    /// Calls `handler` on the loop once it has ended and was reaped. Call on the loop; keep this value until then.
    package borrowing func whenEnded(
        on loop: EventLoop, _ handler: @escaping @Sendable (ChildExit) -> Void
    ) throws(SystemCallError) {
        let process = process
        let raw = handle.rawValue
        try loop.watch(raw, for: .read) { _ in
            guard let exit = reap(process, WNOHANG) else { return }
            loop.unwatch(raw)
            handler(exit)
        }
    }
}

/// nil while it runs. A child that somebody else reaped counts as ended with -1.
private func reap(_ process: Int32, _ options: Int32) -> ChildExit? {
    var status: Int32 = 0
    do throws(SystemCallError) {
        guard try check("waitpid", { waitpid(process, &status, options) }) == process else { return nil }
    } catch {
        return .exited(-1)
    }
    if clinux_wait_status_exited(status) != 0 { return .exited(clinux_wait_status_code(status)) }
    return .killed(signal: clinux_wait_status_signal(status))
}

private func spawn(
    _ start: ProgramStart, detached: Bool
) throws(SystemCallError) -> (process: Int32, pidfd: Int32) {
    let variables = start.environment.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    var process: Int32 = -1
    var pidfd: Int32 = -1
    let failure = withStrings([start.path] + start.arguments) { arguments in
        withStrings(variables) { environment in
            start.descriptors.withUnsafeBufferPointer { descriptors -> SystemCallError? in
                var request = clinux_spawn()
                request.path = UnsafePointer(arguments[0])
                request.arguments = arguments
                request.environment = environment
                request.descriptors = descriptors.baseAddress
                request.descriptor_count = Int32(descriptors.count)
                request.directory = start.directory ?? -1
                request.new_session = start.newSession ? 1 : 0
                request.detached = detached ? 1 : 0
                request.namespaces = start.inNamespaces ? 1 : 0
                guard clinux_spawn(&request, &process, &pidfd) == -1 else { return nil }
                return SystemCallError(call: start.inNamespaces ? "namespaces and execve" : "execve", number: errno)
            }
        }
    }
    if let failure { throw failure }
    return (process, pidfd)
}

/// Calls `body` with a list of C strings that ends with NULL.
private func withStrings<R>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
) -> R {
    var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers)
}
