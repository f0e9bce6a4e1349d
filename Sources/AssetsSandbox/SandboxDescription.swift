// The box of one extension: the service describes it, the launcher enters it. A value without any I/O, so that tests can
// change a part of it and look at what still holds.

/// One of the walls. Each holds by itself; a test takes one away to see what the others are worth.
package enum SandboxLayer: UInt8, Hashable, Sendable, CaseIterable {
    /// Files, TCP, signals and abstract sockets.
    case landlock
    /// System calls.
    case seccomp
    /// An empty root, and networks, processes and shared memory of its own.
    case namespaces
    /// What the extension's runtime gives up before the developer's code: starting programs, and asking for more layers.
    /// The launcher has no part in it: a program that does not ask for it goes without.
    case secondStage

    /// As it stands in the journal.
    package var name: String {
        switch self {
        case .landlock: "Landlock"
        case .seccomp: "call filter"
        case .namespaces: "namespaces"
        case .secondStage: "second stage"
        }
    }
}

/// A folder or file that the extension may use.
package struct SandboxGrant: Hashable, Sendable {
    /// What the extension may do there.
    package enum Use: UInt8, Hashable, Sendable, CaseIterable {
        /// Read, as libraries are; mapping them as code is reading.
        case read
        /// Start and read: the extension's own program and libraries.
        case run
        /// Everything but start.
        case write
        /// A device without a medium: read and write, nothing else.
        case device
        /// The process's own folder of /proc, read.
        case process
        /// Present in the empty root, but nothing more: what lies in it is granted by others.
        case mount
    }

    /// Absolute, without links.
    package var path: String
    package var use: Use
    package var isFolder: Bool

    package init(_ path: String, _ use: Use, isFolder: Bool = true) {
        self.path = path
        self.use = use
        self.isFolder = isFolder
    }

    /// The rights of a rule of Landlock, as far as the kernel has them; nil where there is no rule.
    package func rights(handled: LandlockFileRights) -> LandlockFileRights? {
        var rights: LandlockFileRights
        switch use {
        case .read: rights = [.readFile, .readFolder]
        case .run: rights = [.readFile, .readFolder, .execute]
        // Devices cannot be made by an ordinary user anyway, and sockets have nobody to talk to.
        case .write: rights = handled.subtracting([.execute])
        case .device: rights = [.readFile, .writeFile]
        case .process: rights = [.readFile, .readFolder]
        case .mount: return nil
        }
        if !isFolder { rights.formIntersection(.ofFiles) }
        return rights.intersection(handled)
    }
}

/// A symbolic link of the empty root: the system's own, such as /lib.
package struct SandboxLink: Hashable, Sendable {
    package var path: String
    package var target: String

    package init(_ path: String, to target: String) {
        self.path = path
        self.target = target
    }
}

/// How important the work is that the extension is started for. It cannot be raised later by an ordinary user.
package struct SandboxPriority: Hashable, Sendable {
    /// 0 as everybody's, 19 the lowest.
    package var nice: Int32
    /// Best-effort level of the disk, 0 first and 7 last; nil for what follows from `nice`.
    package var disk: Int32?

    package init(nice: Int32, disk: Int32?) {
        self.nice = nice
        self.disk = disk
    }
}

/// A limit of the process, for good.
package struct SandboxLimit: Hashable, Sendable {
    /// The kernel's number of the resource.
    package var resource: Int32
    package var value: UInt64

    package init(resource: Int32, value: UInt64) {
        self.resource = resource
        self.value = value
    }
}

/// Everything that the launcher does between its start and becoming the extension.
package struct SandboxDescription: Hashable, Sendable {
    /// The service, whose death is the extension's.
    package var service: Int32
    /// What the launcher enters; ``SandboxLayer/secondStage`` means nothing to it.
    package var layers: Set<SandboxLayer>
    package var landlock: LandlockAbilities
    /// The call filter as the kernel takes it.
    package var filter: [UInt8]
    package var grants: [SandboxGrant]
    package var links: [SandboxLink]
    package var priority: SandboxPriority
    package var limits: [SandboxLimit]
    /// Where the program starts.
    package var folder: String
    package var program: String
    package var arguments: [String]
    package var environment: [String]
    /// Enter everything and end with 0 instead of starting the program.
    package var isTrial: Bool

    package init(
        service: Int32, layers: Set<SandboxLayer>, landlock: LandlockAbilities, filter: [UInt8],
        grants: [SandboxGrant], links: [SandboxLink], priority: SandboxPriority, limits: [SandboxLimit],
        folder: String, program: String, arguments: [String] = [], environment: [String], isTrial: Bool = false
    ) {
        self.service = service
        self.layers = layers
        self.landlock = landlock
        self.filter = filter
        self.grants = grants
        self.links = links
        self.priority = priority
        self.limits = limits
        self.folder = folder
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.isTrial = isTrial
    }
}

/// The descriptors that the launcher finds open; the extension has the same but the last.
package enum SandboxDescriptor {
    package static let entryPoints: Int32 = 3
    package static let requests: Int32 = 4
    package static let events: Int32 = 5
    /// A lock of the extension's container, held for as long as the process lives.
    package static let lock: Int32 = 6
    /// The description; read to its end and closed.
    package static let description: Int32 = 7
}
