// The lock that an extension holds for as long as it lives, whoever started it.
package import AssetsOS
internal import Glibc

/// An open lock file. The lock belongs to what is open, which the extension inherits: it is let go by the end of the last
/// process that has it, and by nothing else the service could forget.
package struct ContainerLock: ~Copyable, Sendable {
    package let descriptor: Descriptor

    /// Only for reading: the extension must have nothing to write to beyond its own folders.
    private static let flags = O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW

    /// Opens the file without taking the lock.
    package init(path: String) throws(SystemCallError) {
        do throws(SystemCallError) {
            descriptor = Descriptor(owning: try check("open") { open(path, Self.flags, 0o600) })
        } catch {
            // Who has it open can take the right to open it away.
            guard error.number == EACCES else { throw error }
            try check("chmod") { chmod(path, 0o600) }
            descriptor = Descriptor(owning: try check("open") { open(path, Self.flags, 0o600) })
        }
    }

    /// Takes the lock. False while an extension of an earlier service still has it.
    package borrowing func take() throws(SystemCallError) -> Bool {
        let raw = descriptor.rawValue
        do throws(SystemCallError) { try check("flock") { flock(raw, LOCK_EX | LOCK_NB) } } catch {
            guard error.number == EWOULDBLOCK else { throw error }
            return false
        }
        return true
    }
}
