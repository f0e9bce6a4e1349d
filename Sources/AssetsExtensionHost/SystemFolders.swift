// What every program needs of the system to start: the loader, the C library, the time zones, a few devices.
internal import AssetsSandbox

/// The same for every extension, looked up when the service starts.
struct SystemFolders {
    private(set) var grants: [SandboxGrant] = []
    private(set) var links: [SandboxLink] = []

    #if arch(x86_64)
        private static let triple = "x86_64-linux-gnu"
        private static let loader = "/lib64/ld-linux-x86-64.so.2"
    #elseif arch(arm64)
        private static let triple = "aarch64-linux-gnu"
        private static let loader = "/lib/ld-linux-aarch64.so.1"
    #else
        #error("name the loader of this processor")
    #endif

    init() {
        // Where distributions put the C library and what programs of Foundation need beside it.
        let folders = ["/lib", "/usr/lib"].flatMap { ["\($0)/\(Self.triple)", "\($0)64"] }
        for folder in folders { add(folder, .read) }
        // Some have one folder for everything.
        if grants.allSatisfy({ !$0.path.hasSuffix(Self.triple) }) { add("/usr/lib", .read) }
        add(Self.loader, .run)
        add("/usr/share/zoneinfo", .read)
        add("/etc/localtime", .read)
        add("/sys/devices/system/cpu", .read)
        add("/dev/null", .device)
        add("/dev/urandom", .read)
        grants.append(SandboxGrant("/proc/self", .process))
    }

    /// A system that lacks one of these gets along without it.
    mutating func add(_ path: String, _ use: SandboxGrant.Use) {
        guard let trail = PathTrail(path) else { return }
        let grant = SandboxGrant(trail.real, use, isFolder: trail.isFolder)
        if !grants.contains(grant) { grants.append(grant) }
        add(links: trail.links)
    }

    mutating func add(links more: [SandboxLink]) {
        for link in more where !links.contains(link) { links.append(link) }
    }
}
