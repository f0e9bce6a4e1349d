import Glibc
import Testing

@testable import AssetsExtensionHost

// One after the other: they look at the locks of the process in which all of them run.
@Suite("File locks of a process", .serialized)
struct FileLocksTests {
    enum Kind: CaseIterable { case flock, posix, description }

    /// Calls `body` with a folder and a file in it.
    private func withFile(_ body: (_ folder: String, _ path: String, _ file: Int32) throws -> Void) throws {
        var template = Array("/tmp/locks-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = folder + "/file"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer {
            close(file)
            unlink(path)
            rmdir(folder)
        }
        try body(folder, path, file)
    }

    private func lock(_ kind: Kind, _ file: Int32) -> Bool {
        var range = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 0, l_pid: 0)
        return switch kind {
        case .flock: flock(file, LOCK_EX) == 0
        case .posix: fcntl(file, F_SETLK, &range) == 0
        // F_OFD_SETLK
        case .description: fcntl(file, 37, &range) == 0
        }
    }

    @Test("A lock of each kind is seen with its path, below its folder only", arguments: Kind.allCases)
    func kinds(kind: Kind) throws {
        try withFile { folder, path, file in
            #expect(FileLocks.held(by: getpid(), below: folder) { _ in false } == nil)
            try #require(lock(kind, file))
            #expect(FileLocks.held(by: getpid(), below: folder) { _ in false } == path)
            #expect(FileLocks.held(by: getpid(), below: folder) { $0 == path } == nil)
            #expect(FileLocks.held(by: getpid(), below: folder + "/other") { _ in false } == nil)
            // Nobody else has it.
            #expect(FileLocks.held(by: 1, below: folder) { _ in false } == nil)
        }
    }

    @Test("A lock that only a mapping keeps is seen too")
    func mapped() throws {
        try withFile { folder, path, file in
            #expect(ftruncate(file, 4096) == 0)
            let second = open(path, O_RDWR | O_CLOEXEC)
            try #require(lock(.flock, second))
            let place = try #require(mmap(nil, 4096, PROT_READ, MAP_SHARED, second, 0))
            close(second)
            #expect(FileLocks.held(by: getpid(), below: folder) { _ in false } != nil)
            munmap(place, 4096)
            #expect(FileLocks.held(by: getpid(), below: folder) { _ in false } == nil)
        }
    }

    @Test("Lines of the kernel are understood; who only waits for a lock holds none")
    func lines() {
        let info = """
            pos:\t0
            flags:\t02100002
            lock:\t1: OFDLCK ADVISORY  WRITE -1 08:01:77 0 EOF
            lock:\t2: -> FLOCK  ADVISORY  WRITE 5 08:01:78 0 EOF

            """
        #expect(FileLocks.locks(inInfo: info) == ["08:01:77"])
        let list = """
            1: POSIX  ADVISORY  WRITE 12 fe:00:123 0 EOF
            2: FLOCK  ADVISORY  WRITE 13 fe:00:124 0 EOF
            2: -> FLOCK  ADVISORY  WRITE 12 fe:00:124 0 EOF
            3: LEASE  ACTIVE    READ  12 fe:00:125 0 EOF
            nonsense
            """
        #expect(FileLocks.locks(of: 12, inList: list) == ["fe:00:123", "fe:00:125"])
        #expect(FileLocks.locks(of: 14, inList: list) == [])
    }
}
