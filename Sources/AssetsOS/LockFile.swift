// One service for one device: whoever holds the lock file serves, the others connect to it.
internal import Glibc

/// Why a lock was not taken.
package enum LockFailure: Error, Hashable, Sendable {
    /// Somebody else has it; the process id where it could be read.
    case held(by: Int32?)
    case failed(SystemCallError)
}

/// An exclusive lock for as long as the value lives; a process that dies lets go of it.
///
/// The file stays: removing it would let two processes lock two files of one name.
package struct LockFile: ~Copyable, Sendable {
    private let descriptor: Descriptor

    /// Takes the lock or throws at once.
    package init(path: String) throws(LockFailure) {
        let file = try Self.open(path)
        try Self.lock(file.rawValue)
        descriptor = file
    }

    /// A child between fork and exec has the file open too: closing it would leave it locked for that moment.
    deinit { flock(descriptor.rawValue, LOCK_UN) }

    /// True as long as the value lives, which asking it makes sure of.
    package var isHeld: Bool { descriptor.rawValue >= 0 }

    private static func open(_ path: String) throws(LockFailure) -> Descriptor {
        do throws(SystemCallError) {
            return Descriptor(
                owning: try check("open") { Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) })
        } catch {
            throw .failed(error)
        }
    }

    private static func lock(_ file: Int32) throws(LockFailure) {
        do throws(SystemCallError) {
            try check("flock") { flock(file, LOCK_EX | LOCK_NB) }
            let text = Array("\(getpid())\n".utf8)
            try check("ftruncate") { ftruncate(file, 0) }
            try check("pwrite") { pwrite(file, text, text.count, 0) }
        } catch {
            throw error.number == EWOULDBLOCK ? .held(by: readHolder(file)) : .failed(error)
        }
    }

    private static func readHolder(_ file: Int32) -> Int32? {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = pread(file, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        let digits = bytes.prefix(count).prefix { $0 != UInt8(ascii: "\n") }
        return Int32(String(decoding: digits, as: UTF8.self)).flatMap { $0 > 0 ? $0 : nil }
    }
}
