internal import CLinux
internal import Glibc

/// An open file descriptor that is closed exactly once.
package struct Descriptor: ~Copyable, Sendable {
    package let rawValue: Int32

    /// Takes ownership of `rawValue`.
    package init(owning rawValue: Int32) {
        precondition(rawValue >= 0)
        self.rawValue = rawValue
    }

    deinit { _ = Glibc.close(rawValue) }

    /// Gives the descriptor away; the caller closes it.
    package consuming func release() -> Int32 {
        let raw = rawValue
        discard self
        return raw
    }

    /// Closes and reports what the kernel says.
    package consuming func close() throws(SystemCallError) {
        let raw = release()
        // EINTR on Linux: closed all the same.
        if Glibc.close(raw) == -1 && errno != EINTR { throw SystemCallError(call: "close", number: errno) }
    }

    /// Opens `path` below this directory and never outside it.
    package borrowing func open(beneath path: String, flags: Int32, mode: UInt64 = 0) throws(SystemCallError)
        -> Descriptor
    {
        let directory = rawValue
        return Descriptor(
            owning: try check("openat2") {
                clinux_openat2(directory, path, UInt64(flags | O_CLOEXEC), mode, 0x08 | 0x04)
            })
    }

    package static func directory(_ path: String) throws(SystemCallError) -> Descriptor {
        Descriptor(owning: try check("open") { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    }
}
