// Which program is the service, and what it may inherit from the process that starts it.
internal import AssetsOS
internal import Glibc

/// The service's executable.
enum ServiceProgram {
    static let name = "backgroundassetsd"
    /// The environment variable that names the executable.
    static let variable = "BACKGROUNDASSETS_SERVICE"

    /// Variables that the service needs from its user; nothing else of the starting app reaches it.
    private static let inherited: Set<String> = [
        "HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS",
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]

    static func cleanEnvironment(_ environment: [String: String]) -> [String: String] {
        environment.filter { name, _ in
            inherited.contains(name) || name.hasPrefix("XDG_") || name.hasPrefix("LC_")
                || ProcessEnvironment.sanitizerOptions.contains(name)
        }
    }

    /// The named executable, else the one beside this process's own, else the first in PATH.
    static func find(
        in environment: [String: String], beside folder: String? = ownFolder()
    ) throws(ClientError) -> String {
        if let named = ProcessEnvironment.value(variable, in: environment) {
            guard isExecutable(named) else {
                throw .unreachable(
                    "\(named) cannot be run as asset service; correct the environment variable \(variable)")
            }
            return named
        }
        var folders: [String] = []
        if let folder { folders.append(folder) }
        let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
        folders += path.split(separator: ":").map(String.init)
        // A relative folder in PATH would depend on where the app was started.
        let found = folders.filter { $0.hasPrefix("/") }.map { $0 + "/" + name }.first(where: isExecutable)
        guard let found else {
            throw .unreachable(
                "\(name) is neither beside this program nor in PATH; install it or set \(variable) to its path")
        }
        return found
    }

    private static func isExecutable(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }

    private static func ownFolder() -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &bytes, bytes.count)
        guard count > 0, count < bytes.count else { return nil }
        let path = String(decoding: bytes.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
        return path.lastIndex(of: "/").map { String(path[..<$0]) }
    }
}
