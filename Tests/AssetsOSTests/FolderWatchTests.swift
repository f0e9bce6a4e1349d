// A folder that goes away under its service, and file systems that cannot hold one.
import Glibc
import Testing

@testable import AssetsOS

extension Inbox where Event: Equatable {
    /// The next event is this one.
    fileprivate func expect(_ event: Event, at place: SourceLocation = #_sourceLocation) async throws {
        let next = try await next()
        #expect(next == event, sourceLocation: place)
    }
}

@Suite(.timeLimit(.minutes(10))) struct FolderWatchTests {
    /// Calls `body` with a folder, a file in it and what the watch told.
    private func watching(_ body: (String, String, Inbox<String>) async throws -> Void) async throws {
        try await withTemporaryFolder { base in
            let (folder, file) = (base + "/device", base + "/device/service.lock")
            #expect(mkdir(folder, 0o700) == 0)
            let lock = try LockFile(path: file)
            let told = Inbox<String>()
            try await withLoop { loop in
                let watch = try await loop.perform {
                    try FolderWatch(folder, holding: file, on: loop) { told.put("gone") }
                }
                // As the service has it open, and as any program may touch it.
                let open = try Descriptor.directory(folder)
                #expect(chmod(file, 0o600) == 0)
                #expect(chmod(folder, 0o700) == 0)
                try await body(folder, file, told)
                try await loop.perform { watch.cancel() }
                _ = consume open
            }
            let isHeld = lock.isHeld
            #expect(isHeld)
        }
    }

    @Test("A folder that is removed while it is open is reported")
    func removed() async throws {
        try await watching { folder, file, told in
            #expect(unlink(file) == 0)
            #expect(rmdir(folder) == 0)
            try await told.expect("gone")
        }
    }

    @Test("A folder that is moved away is reported")
    func moved() async throws {
        try await watching { folder, _, told in
            #expect(rename(folder, folder + ".old") == 0)
            try await told.expect("gone")
        }
    }

    @Test("A file of the same name that is another one is reported once")
    func replaced() async throws {
        try await watching { folder, file, told in
            let other = Descriptor(owning: open(folder + "/other", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
            #expect(other.rawValue >= 0)
            #expect(rename(folder + "/other", file) == 0)
            try await told.expect("gone")
            #expect(unlink(file) == 0)
            #expect(rename(folder, folder + ".old") == 0)
            told.put("end")
            try await told.expect("end")
        }
    }

    @Test("Network and FUSE file systems are named, those of a disk or of memory are not")
    func fileSystems() async throws {
        let refused: [(UInt32, String)] = [
            (0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB"), (0x6573_5546, "FUSE"), (0x0102_1997, "9P"),
        ]
        for (magic, name) in refused { #expect(FileSystemKind.unreliableName(ofMagic: magic) == name) }
        // ext4, btrfs, xfs, tmpfs, overlay, f2fs, zfs
        for magic: UInt32 in [0xEF53, 0x9123_683E, 0x5846_5342, 0x0102_1994, 0x794C_7630, 0xF2F5_2010, 0x2FC1_2FC1] {
            #expect(FileSystemKind.unreliableName(ofMagic: magic) == nil)
        }
        try await withTemporaryFolder { folder in
            let tree = try DeviceTree(root: folder)
            #expect(tree.unreliableFileSystem == nil)
        }
    }

    @Test("Names of half-written files are told from those that others give")
    func temporaryNames() {
        for name in [".new-0", ".new-1f", ".new-ffffffffffffffff"] { #expect(DeviceTree.isTemporary(name), "\(name)") }
        let others = [
            ".new-", ".new-1F", ".new-+1", ".new--1", ".new-x", "new-1", ".new-1ffffffffffffffff", ".new-1.txt",
        ]
        for name in others {
            #expect(!DeviceTree.isTemporary(name), "\(name)")
        }
    }
}
