// What of a box's grants has to appear in an empty root.

extension SandboxDescription {
    /// The grants to be mounted, each after what it lies in. What lies in another mount is there already; the process's
    /// own folder comes with the new /proc.
    package var mounts: [SandboxGrant] {
        let candidates = grants.filter { $0.use != .process }
        return candidates.filter { grant in
            !candidates.contains { $0.path != grant.path && grant.path.hasPrefix($0.path + "/") }
        }
    }

    /// The links to be made: those that do not lie in a mount.
    package var rootLinks: [SandboxLink] {
        let mounts = mounts
        return links.filter { link in !mounts.contains { link.path.hasPrefix($0.path + "/") } }
    }
}
