// The root of the extension's own mount namespace: empty, but for the folders that it may use.
import AssetsSandbox
import CLinux
import Glibc

/// Makes the root and enters it. What is not granted has no name in there.
struct EmptyRoot {
    /// Covered by the new root while that is made. Nothing is looked up below it meanwhile, and every system has it.
    private static let base = "/usr"

    /// What appears in the root, and how.
    private struct Mount {
        let path: String
        let attributes: Int32
        let isFolder: Bool
    }

    private let mounts: [Mount]
    private let links: [SandboxLink]

    init(of description: SandboxDescription) {
        mounts = description.mounts.map { grant in
            Mount(path: grant.path, attributes: Self.attributes(of: grant), isFolder: grant.isFolder)
        }
        links = description.rootLinks
    }

    /// Only what holds programs and libraries can be run, and only what the extension owns can be changed.
    private static func attributes(of grant: SandboxGrant) -> Int32 {
        switch grant.use {
        case .write, .mount: Int32(clinux_mount_no_devices | clinux_mount_no_programs)
        case .device: Int32(clinux_mount_read_only | clinux_mount_no_programs)
        case .read, .run, .process:
            Int32(clinux_mount_read_only | (grant.isFolder ? clinux_mount_no_devices : 0))
        }
    }

    func enter() {
        // Looked up before the base is covered: a device may lie anywhere.
        let trees = mounts.map { mount in
            let place = must(mount.path, clinux_open_place(mount.path))
            defer { close(place) }
            return must("mount of \(mount.path)", clinux_mount_copy(place, mount.attributes))
        }
        let own = must("/proc/self", clinux_open_place("/proc/self"))
        must("empty root", clinux_mount_empty(Self.base))
        must("empty root", chdir(Self.base))
        var made: Set<String> = []
        for (mount, tree) in zip(mounts, trees) {
            makePlace(mount.path, isFolder: mount.isFolder, &made)
            must("mount of \(mount.path)", clinux_mount_place(tree, String(mount.path.dropFirst())))
            close(tree)
        }
        mountProcesses(own, &made)
        for link in links {
            makeFolders(above: link.path, &made)
            must("link \(link.path)", symlink(link.target, String(link.path.dropFirst())))
        }
        must("empty root", clinux_mount_make_read_only("."))
        must("empty root", clinux_enter_root())
    }

    /// The processes of this namespace, which is one; where the system hides parts of /proc, the own folder of the
    /// system's.
    private func mountProcesses(_ own: Int32, _ made: inout Set<String>) {
        makeFolders(above: "/proc/self", &made)
        if clinux_mount_processes("proc") == 0 { return }
        must("/proc/self", mkdir("proc/self", 0o755))
        let tree = must("/proc/self", clinux_mount_copy(own, Int32(clinux_mount_no_devices)))
        must("/proc/self", clinux_mount_place(tree, "proc/self"))
    }

    private func makePlace(_ path: String, isFolder: Bool, _ made: inout Set<String>) {
        makeFolders(above: path, &made)
        let name = String(path.dropFirst())
        if isFolder {
            if made.insert(name).inserted { must(path, mkdir(name, 0o755)) }
        } else {
            close(must(path, open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)))
        }
    }

    private func makeFolders(above path: String, _ made: inout Set<String>) {
        var folder = ""
        for name in path.split(separator: "/").dropLast() {
            folder += folder.isEmpty ? String(name) : "/\(name)"
            if made.insert(folder).inserted { must("/" + folder, mkdir(folder, 0o755)) }
        }
    }
}
