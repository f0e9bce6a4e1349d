// Which file systems a device may be on.
internal import CLinux

/// Kinds of file systems, by the number that statfs(2) answers.
package enum FileSystemKind {
    /// File systems on which locks, renames and syncs are what some other machine or program makes of them: a service
    /// on each of two machines could serve one device, and a file that was synced could be gone after a power cut.
    private static let unreliable: [UInt32: String] = [
        0x6969: "NFS", 0x517B: "SMB", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB", 0x6573_5546: "FUSE",
        0x0102_1997: "9P", 0x00C3_6400: "Ceph", 0x5346_414F: "AFS", 0x6B41_4653: "AFS", 0x7375_7245: "Coda",
        0x564C: "NCP", 0x786F_4256: "a folder of the host (vboxsf)",
    ]

    /// What people call a file system that cannot hold a device; nil for all others.
    package static func unreliableName(ofMagic magic: UInt32) -> String? { unreliable[magic] }
}

extension DeviceTree {
    /// The name of this tree's file system when it cannot hold a device; nil when it can, or when it cannot be asked.
    package var unreliableFileSystem: String? {
        var magic: UInt32 = 0
        guard clinux_file_system_magic(directory.rawValue, &magic) == 0 else { return nil }
        return FileSystemKind.unreliableName(ofMagic: magic)
    }
}
