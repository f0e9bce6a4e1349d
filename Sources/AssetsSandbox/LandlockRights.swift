// What Landlock can forbid, by the version of the kernel's interface. What is not handled is allowed, so everything that a
// kernel knows has to be handled.

/// Rights to files and folders; the values are the kernel's.
package struct LandlockFileRights: OptionSet, Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static let execute = Self(rawValue: 1 << 0)
    package static let writeFile = Self(rawValue: 1 << 1)
    package static let readFile = Self(rawValue: 1 << 2)
    package static let readFolder = Self(rawValue: 1 << 3)
    package static let removeFolder = Self(rawValue: 1 << 4)
    package static let removeFile = Self(rawValue: 1 << 5)
    package static let makeCharacterDevice = Self(rawValue: 1 << 6)
    package static let makeFolder = Self(rawValue: 1 << 7)
    package static let makeFile = Self(rawValue: 1 << 8)
    package static let makeSocket = Self(rawValue: 1 << 9)
    package static let makePipe = Self(rawValue: 1 << 10)
    package static let makeBlockDevice = Self(rawValue: 1 << 11)
    package static let makeLink = Self(rawValue: 1 << 12)
    /// Moving or linking a file into another folder. A kernel without it refuses that in every ruleset.
    package static let refer = Self(rawValue: 1 << 13)
    package static let truncate = Self(rawValue: 1 << 14)
    package static let controlDevice = Self(rawValue: 1 << 15)
    package static let resolveSocket = Self(rawValue: 1 << 16)

    /// Those that mean something for a file; the kernel refuses a rule on a file with any other.
    package static let ofFiles: Self = [.execute, .writeFile, .readFile, .truncate, .controlDevice, .resolveSocket]
}

/// Everything that one version of Landlock can forbid.
package struct LandlockAbilities: Hashable, Sendable {
    /// Later versions may know more than is forbidden here.
    package static let latestKnown: Int32 = 9

    package var files: LandlockFileRights
    /// TCP ports: bind 1, connect 2.
    package var network: UInt64
    /// What ends at the sandbox: abstract sockets 1, signals 2.
    package var scopes: UInt64

    /// What the kernel can do.
    ///
    /// - Parameter version: Of the kernel's interface; 0 where it has no Landlock.
    package init(version: Int32) {
        files = []
        network = 0
        scopes = 0
        // The first thirteen came together.
        if version >= 1 { files = LandlockFileRights(rawValue: (1 << 13) - 1) }
        if version >= 2 { files.insert(.refer) }
        if version >= 3 { files.insert(.truncate) }
        if version >= 4 { network = 0b11 }
        if version >= 5 { files.insert(.controlDevice) }
        if version >= 6 { scopes = 0b11 }
        // 7 adds what is logged, 8 that all threads can be restricted at once.
        if version >= 9 { files.insert(.resolveSocket) }
    }

    /// What an extension can do on such a kernel although it should not, as sentences for people.
    package var weaknesses: [String] {
        if files.isEmpty { return ["Landlock is missing: files are closed off by the empty root alone"] }
        var result: [String] = []
        if !files.contains(.refer) { result.append("moves between folders copy: the kernel cannot allow them") }
        if !files.contains(.truncate) { result.append("files outside can be cut where the root is not empty") }
        if network == 0 { result.append("TCP is closed by the call filter alone") }
        if scopes == 0 { result.append("signals and abstract sockets are closed by filter and namespaces alone") }
        return result
    }
}
