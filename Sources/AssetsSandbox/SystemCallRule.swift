// The system calls of an extension, as values: what is not named here is refused.

/// One allowed system call, perhaps only with some arguments.
package struct SystemCallRule: Hashable, Sendable {
    /// A demand on one argument: of its bits in `mask`, those of `value` are set and no others.
    package struct Demand: Hashable, Sendable {
        package var argument: UInt32
        package var mask: UInt64
        package var value: UInt64
        /// Have to hold as well, each for another argument.
        package var with: [Demand]

        package init(_ argument: UInt32, _ value: UInt64, mask: UInt64 = .max, with: [Demand] = []) {
            self.argument = argument
            self.mask = mask
            self.value = value
            self.with = with
        }
    }

    package var name: String
    /// The call is allowed where one of these holds; without any, always.
    package var demands: [Demand]

    package init(_ name: String, _ demands: [Demand] = []) {
        self.name = name
        self.demands = demands
    }
}

extension SystemCallRule {
    /// Stands for the extension's own process id, which the launcher puts in its place.
    package static let ownProcess: UInt32 = 0x5EC0_DE1D

    /// Refused as calls that the kernel does not have: the C library then takes an older one.
    package static let unknown = ["clone3", "openat2", "fchmodat2"]

    /// Everything that an extension may call. Each group says what needs it.
    package static let allowed: [SystemCallRule] =
        files + descriptors + memory + threads + process + time + events + sockets + stages

    private static func plain(_ names: String) -> [SystemCallRule] {
        names.split(separator: " ").map { SystemCallRule(String($0)) }
    }

    /// Files by path, which Landlock and the root hold to the extension's own. Mode, owner, times and attributes are not
    /// among them: Landlock does not ask about those; the repair library leads the calls of the C library to the forms with
    /// a descriptor.
    private static let files =
        plain(
            """
            openat newfstatat statx access faccessat faccessat2 getcwd chdir readlink readlinkat mkdir mkdirat rmdir \
            unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat truncate statfs umask
            """) + [
            // Pipes with a name, and plain files; devices and sockets never.
            SystemCallRule("mknodat", kinds.map { .init(2, $0, mask: kindMask) })
        ]
    private static let kindMask: UInt64 = 0o170000
    private static let kinds: [UInt64] = [0o010000, 0o100000, 0]

    private static let descriptors =
        plain(
            """
            read pread64 readv write pwrite64 writev close close_range lseek fstat getdents64 fchdir ftruncate \
            fsync fdatasync fadvise64 copy_file_range sendfile dup dup2 dup3 flock fstatfs fchmod fchown \
            fgetxattr fsetxattr flistxattr fremovexattr
            """) + [
            // Space up to a file's end; what lies behind it no limit sees.
            SystemCallRule("fallocate", [.init(1, 0, mask: 0xFFFF_FFFF)]),
            // A descriptor, no path: times of what is open.
            SystemCallRule("utimensat", [.init(1, 0)]),
            SystemCallRule("fcntl", fcntlCommands.map { .init(1, $0, mask: 0xFFFF_FFFF) }),
            SystemCallRule("ioctl", [.init(1, 0x541B, mask: 0xFFFF_FFFF)]),  // FIONREAD
        ]
    /// Duplicates, flags and locks. Not who gets signals of a descriptor: that would reach other processes.
    private static let fcntlCommands: [UInt64] = [0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030]

    private static let memory =
        plain("munmap mremap madvise msync brk") + [
            // Code comes from files, and is never written: what an extension makes cannot be run.
            SystemCallRule("mprotect", [.init(2, 0, mask: execute)]),
            // What is shared has a file, and nothing grows like a stack: memory of both kinds would be counted for
            // nobody.
            SystemCallRule(
                "mmap",
                [
                    .init(3, anonymous, mask: anonymous | shared | growing, with: [.init(2, 0, mask: execute)]),
                    .init(3, 0, mask: anonymous | growing, with: [.init(2, 0, mask: execute)]),
                    .init(3, 0, mask: anonymous | growing, with: [.init(2, 0, mask: write)]),
                ]),
        ]
    /// Protection and kinds of memory.
    private static let (write, execute): (UInt64, UInt64) = (2, 4)
    private static let (shared, anonymous, growing): (UInt64, UInt64, UInt64) = (0x01, 0x20, 0x100)

    private static let threads =
        plain(
            """
            futex set_robust_list rseq set_tid_address exit gettid sched_yield sched_getaffinity
            """) + [
            // Threads: shared memory, files and signals, and no namespace of their own.
            SystemCallRule("clone", [.init(0, cloneThread, mask: cloneThread | cloneNamespaces)]),
            SystemCallRule("tgkill", [.init(0, UInt64(ownProcess))]),
            SystemCallRule("kill", [.init(0, UInt64(ownProcess))]),
        ]
    private static let cloneThread: UInt64 = 0x0001_0000
    /// All flags that make a namespace.
    private static let cloneNamespaces: UInt64 = 0x7E02_0000

    private static let process =
        plain(
            """
            execve exit_group getpid getuid geteuid getgid getegid uname sysinfo getrusage getrandom arch_prctl \
            rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack pause restart_syscall
            """) + [
            SystemCallRule("prlimit64", [.init(0, 0)]),
            // Names of threads: set and get.
            SystemCallRule("prctl", [.init(0, 15, mask: 0xFFFF_FFFF), .init(0, 16, mask: 0xFFFF_FFFF)]),
        ]

    private static let time = plain(
        "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday timerfd_create timerfd_settime")

    private static let events = plain(
        """
        poll ppoll pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 pipe2
        """)

    /// The inherited ones; nothing makes another.
    private static let sockets = plain("sendto recvfrom shutdown")

    /// What the second stage needs, and takes away together with `execve`.
    private static let stages = plain("seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self")
}
