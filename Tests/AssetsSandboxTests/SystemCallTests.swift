// The list of allowed system calls.
import AssetsSandbox
import Testing

@Suite struct SystemCallTests {
    /// Each of them would be a hole.
    private static let never = """
        socket socketpair connect bind listen accept accept4 fork vfork clone3 execveat ptrace process_vm_readv \
        process_vm_writev process_madvise bpf perf_event_open io_uring_setup io_uring_enter io_uring_register keyctl \
        add_key request_key unshare setns mount umount2 pivot_root chroot memfd_create memfd_secret userfaultfd \
        pidfd_open pidfd_getfd pidfd_send_signal shmget shmat semget msgget mq_open open_by_handle_at chmod fchmodat \
        chown lchown fchownat utime utimes futimesat setxattr lsetxattr getxattr removexattr \
        setpriority ioprio_set setrlimit rt_sigqueueinfo rt_tgsigqueueinfo tkill modify_ldt personality quotactl syslog \
        reboot swapon init_module finit_module kexec_load iopl ioperm setuid setgid setgroups capset openat2 splice tee \
        vmsplice inotify_init1 fanotify_init name_to_handle_at sethostname acct settimeofday clock_settime adjtimex \
        mlock mlockall remap_file_pages sendmsg recvmsg
        """.split(separator: " ").map(String.init)

    @Test("At most 125 calls are allowed, each named once, and none of those that lead out")
    func list() {
        let names = SystemCallRule.allowed.map(\.name)
        #expect(names.count <= 125)
        #expect(Set(names).count == names.count)
        #expect(Set(names).isDisjoint(with: Self.never))
        #expect(Set(SystemCallRule.unknown).isDisjoint(with: names))
    }

    /// Whether a rule lets a call with that argument pass, the others being 0.
    private func allows(_ name: String, _ argument: UInt32, _ value: UInt64) throws -> Bool {
        try allows(name, [argument: value])
    }

    private func allows(_ name: String, _ arguments: [UInt32: UInt64]) throws -> Bool {
        let rule = try #require(SystemCallRule.allowed.first { $0.name == name })
        return rule.demands.isEmpty
            || rule.demands.contains { demand in
                ([demand] + demand.with).allSatisfy { arguments[$0.argument, default: 0] & $0.mask == $0.value }
            }
    }

    @Test("Calls that can do more than an extension needs are held to it by their arguments")
    func demands() throws {
        let thread: UInt64 = 0x3D0F00
        #expect(try allows("clone", 0, thread))
        #expect(try !allows("clone", 0, 17), "fork")
        #expect(try !allows("clone", 0, 0x4111), "vfork")
        for namespace in [17, 25, 26, 27, 28, 29, 30].map({ UInt64(1) << $0 }) {
            #expect(try !allows("clone", 0, thread | namespace))
        }
        #expect(try allows("mmap", 3, 0x02) && allows("mmap", 3, 0x22) && allows("mmap", 3, 0x01))
        #expect(try !allows("mmap", 3, 0x21), "shared memory without a file")
        #expect(try !allows("mmap", 3, 0x23))
        #expect(try !allows("mmap", 3, 0x122), "memory that grows like a stack")
        // Protection and kind: code comes from files, and is never written.
        #expect(try allows("mmap", [2: 5, 3: 0x02]) && allows("mmap", [2: 3, 3: 0x22]))
        #expect(try allows("mmap", [2: 3, 3: 0x01]))
        for flags: UInt64 in [0x01, 0x02, 0x22, 0x32] { #expect(try !allows("mmap", [2: 7, 3: flags])) }
        #expect(try !allows("mmap", [2: 5, 3: 0x22]))
        #expect(try allows("mprotect", 2, 3) && !allows("mprotect", 2, 5))
        #expect(try allows("fallocate", 1, 0) && !allows("fallocate", 1, 1))
        #expect(try allows("prctl", 0, 15) && allows("prctl", 0, 16))
        for option: UInt64 in [1, 4, 8, 22, 23, 24, 35, 36, 38, 47, 59, 0x5961_6D61, 1 << 32 | 1] {
            #expect(try !allows("prctl", 0, option))
        }
        #expect(try allows("ioctl", 1, 0x541B))
        // TCGETS, TIOCSTI, TIOCGWINSZ, TIOCLINUX, FS_IOC_SETFLAGS.
        for request: UInt64 in [0x5401, 0x5412, 0x5413, 0x541C, 0x4008_6602] {
            #expect(try !allows("ioctl", 1, request))
        }
        #expect(try allows("fcntl", 1, 6))
        // F_SETOWN, F_SETSIG, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_ADD_SEALS.
        for command: UInt64 in [8, 10, 15, 1024, 1026, 1031, 1033] { #expect(try !allows("fcntl", 1, command)) }
        #expect(try !allows("utimensat", 1, 0x7FFF_0000_0000), "a path")
        #expect(try allows("mknodat", 2, 0o010600))
        for kind: UInt64 in [0o020000, 0o060000, 0o140000] { #expect(try !allows("mknodat", 2, kind | 0o600)) }
        #expect(try !allows("prlimit64", 0, 1))
        #expect(try !allows("kill", 0, .max) && !allows("tgkill", 0, 1))
    }

    @Test("The own process id takes the place of its stand-in where a filter compares, and nowhere else")
    func ownProcess() {
        func instruction(_ code: UInt16, _ operand: UInt32) -> [UInt8] {
            withUnsafeBytes(of: code) { Array($0) } + [1, 2] + withUnsafeBytes(of: operand) { Array($0) }
        }
        let (compare, load): (UInt16, UInt16) = (0x15, 0x20)
        let old = SystemCallRule.ownProcess
        let program = [(compare, old), (load, old), (compare, old + 1), (compare, old)].flatMap(instruction)
        let wanted = [(compare, 7), (load, old), (compare, old + 1), (compare, 7)].flatMap(instruction)
        #expect(FilterProgram.replacing(old, with: 7, in: program) == wanted)
        #expect(FilterProgram.replacing(old, with: 7, in: []) == [])
        #expect(FilterProgram.replacing(old, with: 7, in: [1, 2, 3]) == [1, 2, 3])
    }
}
