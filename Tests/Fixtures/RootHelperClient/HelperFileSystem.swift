// A file system of a test's own: small, slow to fill, and with a power plug that can be pulled.
internal import AssetsOS
internal import Glibc

/// A mounted file system on a disk in memory. It goes with this value.
package final class HelperFileSystem: Sendable {
    private let connection: HelperConnection
    /// An empty folder of the user who runs the tests, the root of the file system.
    package let path: String

    package init(_ options: FileSystemOptions) throws {
        connection = try HelperConnection()
        let reply = try connection.call(.makeFileSystem(options))
        guard case .fileSystem(let path) = reply else { throw HelperConnection.unexpected(reply) }
        self.path = path
    }

    /// Cuts the power: what was not flushed is gone, every call on the file system fails from now on.
    ///
    /// - Parameter seed: chooses what of its cache a disk with one had written already; nil for nothing.
    package func cutPower(seed: UInt64? = nil) throws { try connection.call(.cutPower(seed: seed)) }

    /// How long somebody whose end is already known may still hold a file, and how often that is looked at.
    private static let busyMax = Duration.seconds(30)
    private static let busyInterval: Int32 = 20

    /// Mounts it again, with whatever repair that takes. Nobody may have a file of it open.
    ///
    /// Who was just killed is waited for here, and not by the helper, which serves all tests one after the other.
    package func mountAgain() throws {
        let end = MonotonicClock.now + Self.busyMax
        while true {
            do {
                try connection.call(.mountAgain)
                return
            } catch {
                guard "\(error)".contains("Device or resource busy"), MonotonicClock.now < end else { throw error }
                poll(nil, 0, Self.busyInterval)
            }
        }
    }

    /// Removes it, and returns when it is gone.
    package func remove() { connection.close() }
}
