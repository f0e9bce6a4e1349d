// The second stage of the sandbox: what the process gives up right before the developer's code.
internal import CLinux
internal import Glibc

/// To load the extension's libraries the first stage has to leave the process the right to start its own program again.
/// Nothing of it is needed any more when `main` runs.
package enum SecondStage {
    /// Ends the process with this where a wall cannot be built; the service says so in its journal.
    private static let failed: Int32 = 122
    private static let execute: UInt64 = 1
    private static let refer: UInt64 = 1 << 13
    /// Landlock knows moves between folders from this version on.
    private static let versionOfMoves: Int32 = 2
    /// It can restrict all threads from this version on.
    private static let versionOfAllThreads: Int32 = 8
    private static let landlockAllThreads: UInt32 = 1 << 3
    private static let seccompAllThreads: UInt32 = 1

    /// Gives up starting programs, and asking for more layers, for all threads and for good.
    ///
    /// Constructors of libraries run before, and may have started threads: the filter covers those too, or the process
    /// ends. Call before anything of the developer's, on any thread.
    package static func enter() {
        do throws(Failure) {
            // Set by the launcher, whose filter now refuses to set it again; without it the next call fails.
            _ = clinux_no_new_privileges()
            try forbidExecution()
            try must("call filter", clinux_seccomp_second_stage(seccompAllThreads))
        } catch {
            let line = "second stage of the sandbox: \(error.call): \(String(cString: strerror(error.number)))\n"
            _ = line.withCString { write(2, $0, strlen($0)) }
            _exit(failed)
        }
    }

    /// A layer that forbids one right, to execute, everywhere.
    private static func forbidExecution() throws(Failure) {
        let version = clinux_landlock_version()
        // Without Landlock the filter alone holds.
        guard version >= 1 else { return }
        let allowsMoves = version >= versionOfMoves
        let ruleset = try must("Landlock", clinux_landlock_create(execute | (allowsMoves ? refer : 0), 0, 0))
        defer { close(ruleset) }
        if allowsMoves {
            // A layer that does not allow moves between folders forbids them, whatever the others say.
            let root = try must("/", clinux_open_place("/"))
            defer { close(root) }
            try must("Landlock", clinux_landlock_allow(ruleset, root, refer))
        }
        let flags = version >= versionOfAllThreads ? landlockAllThreads : 0
        try must("Landlock", clinux_landlock_restrict(ruleset, flags))
    }

    private struct Failure: Error {
        var call: String
        var number: Int32
    }

    @discardableResult
    private static func must(_ call: String, _ result: Int32) throws(Failure) -> Int32 {
        if result == -1 { throw Failure(call: call, number: errno) }
        return result
    }
}
