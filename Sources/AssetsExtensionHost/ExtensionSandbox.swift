// The box of extensions: what this machine can do for it, and the box of one extension.
package import AssetsOS
package import AssetsSandbox
internal import CLinux
internal import Glibc

/// Whose box it is: real paths, no links.
package struct ExtensionSite: Hashable, Sendable {
    /// The device's folder.
    package var root: String
    /// The extension's own.
    package var container: String
    package var executable: String
    /// The appex; `Frameworks` lies in the folder two above it.
    package var folder: String
    package var groupContainers: [String]

    package var containers: String { "\(root)/Containers" }
    package var home: String { "\(container)/home" }
    package var temporary: String { "\(container)/tmp" }
    package var manifests: String { "\(container)/Manifests" }
    package var lock: String { "\(container)/.lock" }
    package var frameworks: String { "\(folder)/../../Frameworks" }
}

/// Makes boxes. What does not change from one extension to the next is found out once.
package struct ExtensionSandbox: Sendable {
    /// 0 where the kernel has no Landlock.
    package let landlockVersion: Int32
    /// What boxes are made of here; ``SandboxLayer/secondStage`` is entered by the extension's runtime.
    package private(set) var layers: Set<SandboxLayer> = []
    /// Why a layer is missing, in the words of the kernel.
    package private(set) var obstacles: [SandboxLayer: String] = [:]

    private let launcher: String
    private let landlock: LandlockAbilities
    private let filter: [UInt8]
    let system: SystemFolders
    private let repairLibrary: String?
    /// The device's folder without links.
    package let root: String

    /// Tries each layer, in a launcher of its own.
    ///
    /// - Parameters:
    ///   - root: The device's folder.
    ///   - launcher: Absolute path of extension-launcher.
    ///   - repairLibrary: What is loaded into extensions before Foundation.
    package init(root: String, launcher: String, repairLibrary: String?) throws(SystemCallError) {
        guard let trail = PathTrail(root) else { throw SystemCallError(call: "lstat", number: ENOENT) }
        self.root = trail.real
        self.launcher = launcher
        self.repairLibrary = repairLibrary
        landlockVersion = max(0, clinux_landlock_version())
        landlock = LandlockAbilities(version: landlockVersion)
        filter = try CallFilter.compile()
        var system = SystemFolders()
        system.add(links: trail.links)
        if let repairLibrary { system.add(repairLibrary, .read) }
        SanitizedSandbox.relax(&system)
        self.system = system
        for layer in SandboxLayer.allCases where layer != .secondStage {
            if let obstacle = try obstacle(to: layer) { obstacles[layer] = obstacle } else { layers.insert(layer) }
        }
        if obstacles[.seccomp] == nil { layers.insert(.secondStage) }
    }

    /// What extensions are closed off with, for people.
    package var reports: [SandboxReport] {
        SandboxReport.all(active: layers, obstacles: obstacles, landlockVersion: landlockVersion)
    }

    // MARK: Boxes

    /// All paths are below the device's folder; `folder` is the appex.
    package func site(
        container: String, executable: String, folder: String, groupContainers: [String]
    ) -> ExtensionSite {
        ExtensionSite(
            root: root, container: "\(root)/\(container)", executable: "\(root)/\(executable)",
            folder: "\(root)/\(folder)", groupContainers: groupContainers.map { "\(root)/\($0)" })
    }

    /// The box of an extension.
    ///
    /// - Parameters:
    ///   - environment: All of it.
    ///   - omitted: Layers that are not entered. For tests: the service never leaves one out that is there.
    package func description(
        of site: ExtensionSite, priority: SandboxPriority, limits: [SandboxLimit], environment: [String: String],
        arguments: [String] = [], without omitted: Set<SandboxLayer> = []
    ) -> SandboxDescription {
        let layers = layers.subtracting(omitted)
        var environment = environment
        if let repairLibrary { environment[RepairLibrary.loaderVariable] = repairLibrary }
        return SandboxDescription(
            service: getpid(), layers: layers, landlock: landlock, filter: filter,
            grants: system.grants + grants(of: site, layers), links: system.links, priority: priority, limits: limits,
            folder: site.home, program: site.executable, arguments: arguments,
            environment: environment.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })
    }

    private func grants(of site: ExtensionSite, _ layers: Set<SandboxLayer>) -> [SandboxGrant] {
        var grants = [SandboxGrant(site.folder, .run)]
        if let frameworks = PathTrail(site.frameworks)?.real { grants.append(SandboxGrant(frameworks, .run)) }
        grants += SwiftRuntimeFolder.paths(of: site.executable).map { SandboxGrant($0, .read) }
        // A file can be moved within one mount only. So the containers are one, and Landlock tells ours from those of
        // others; where Landlock cannot, or does not allow moves, ours are mounted and no others.
        if layers.contains(.landlock) && landlock.files.contains(.refer) {
            grants.append(SandboxGrant(site.containers, .mount))
        }
        grants += ([site.home, site.temporary] + site.groupContainers).map { SandboxGrant($0, .write) }
        grants.append(SandboxGrant(site.manifests, .read))
        return grants
    }

    /// Starts a launcher for that box. Call on the service's loop: the extension dies with the thread that started it.
    ///
    /// - Parameter descriptors: 0 to 6 of the extension, as ``SandboxDescriptor`` names them.
    package func start(_ box: SandboxDescription, descriptors: [Int32]) throws(SystemCallError) -> ChildProcess {
        precondition(descriptors.count == Int(SandboxDescriptor.description), "the launcher needs all of them")
        // A file, not a pipe: how much of a pipe is taken without a reader depends on what else the user has open.
        let file = Descriptor(owning: try check("memfd_create") { clinux_memory_file("box") })
        let raw = file.rawValue
        let bytes = box.bytes
        guard try check("pwrite", { pwrite(raw, bytes, bytes.count, 0) }) == bytes.count else {
            throw SystemCallError(call: "pwrite", number: EIO)
        }
        return try ChildProcess(
            ProgramStart(
                path: launcher, environment: SanitizedSandbox.launcherEnvironment,
                descriptors: descriptors + [raw], inNamespaces: box.layers.contains(.namespaces)))
    }
}
