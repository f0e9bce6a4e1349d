// The library that repairs Foundation in apps and extensions: where it is, and how a program gets it.
internal import Glibc

/// Finds libFoundationRepair.so, which is loaded into apps and extensions before Foundation.
package enum RepairLibrary {
    private static let name = "libFoundationRepair.so"
    /// What the loader of programs looks at.
    package static let loaderVariable = "LD_PRELOAD"

    /// The library's path, without links and dots: the folder of the executables is not there for who is in a sandbox. Nil
    /// where it is not installed.
    ///
    /// - Parameter folder: The folder of the service's executable: the library lies beside it where it was built, and in
    ///   `lib/backgroundassets` beside `bin` where it was installed.
    package static func path(besideExecutablesIn folder: String) -> String? {
        let candidates = ["\(folder)/\(name)", "\(folder)/../lib/backgroundassets/\(name)"]
        // The loader takes spaces and colons for separators.
        return candidates.lazy.compactMap(resolved).first { path in
            access(path, R_OK) == 0 && !path.utf8.contains { $0 == 0x20 || $0 == 0x3A }
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// The list of libraries with another one in front.
    package static func list(_ library: String, before others: String?) -> String {
        guard let others, !others.isEmpty else { return library }
        return library + ":" + others
    }
}
