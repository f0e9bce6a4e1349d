// What is different in a build for a sanitizer. Its runtime asks for memory, calls and files that no extension needs, so
// some walls are left out there, loudly: the journal and doctor name them.
internal import AssetsOS
internal import AssetsSandbox

/// Nothing at all in other builds.
enum SanitizedSandbox {
    #if SANITIZED
        /// The call filter: the runtimes of the sanitizers make calls of many kinds, another set with each compiler.
        /// Namespaces: a child that shares the service's memory until exec, which makes them cheap, is reported as a race.
        static func obstacle(to layer: SandboxLayer) -> String? {
            layer == .landlock ? nil : "this build is for a sanitizer, whose runtime cannot live in it"
        }

        /// Where findings are written, and what symbols are looked up in.
        static func relax(_ system: inout SystemFolders) {
            for options in launcherEnvironment.values {
                for option in options.split(separator: ":") where option.hasPrefix("log_path=") {
                    let path = String(option.dropFirst("log_path=".count))
                    if let slash = path.lastIndex(of: "/") { system.add(String(path[..<slash]), .write) }
                }
            }
            system.add("/proc/sys/vm", .read)
        }

        static var launcherEnvironment: [String: String] {
            ProcessEnvironment.current.filter { ProcessEnvironment.sanitizerOptions.contains($0.key) }
        }
    #else
        static func obstacle(to layer: SandboxLayer) -> String? { nil }

        static func relax(_ system: inout SystemFolders) {}

        static var launcherEnvironment: [String: String] { [:] }
    #endif
}
