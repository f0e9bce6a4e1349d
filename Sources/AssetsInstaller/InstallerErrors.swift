// System call failures and hostile input as the errors that clients see.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

extension AssetsError {
    /// The archive or folder at `source` holds something that is refused.
    static func hostile(_ source: String, _ reason: String) -> AssetsError {
        AssetsError(
            .archiveInvalid, "\(source): \(reason)", remedy: "Make the archive anew from the built app bundle")
    }

    /// Writing below the device's folder failed.
    static func writing(_ path: String, _ error: SystemCallError) -> AssetsError {
        switch error.number {
        case ENOSPC, EDQUOT:
            AssetsError(.storageFull, "No room to write \(path): \(error)", remedy: "Free space and install again")
        default:
            AssetsError(.storageFailed, "Cannot write \(path): \(error)")
        }
    }

    /// Reading what is to be installed failed.
    static func reading(_ path: String, _ error: SystemCallError) -> AssetsError {
        AssetsError(
            .sourceUnreachable, "Cannot read \(path): \(error)", remedy: "Check the path and its permissions")
    }

    static let stagingCancelled = AssetsError(.cancelled, "The installation was cancelled")
}

/// Runs calls that write; what fails is told with `path`.
func writing<R: ~Copyable>(
    _ path: @autoclosure () -> String, _ body: () throws(SystemCallError) -> R
) throws(AssetsError) -> R {
    do throws(SystemCallError) { return try body() } catch { throw .writing(path(), error) }
}

/// Runs calls that read the source; what fails is told with `path`.
func reading<R: ~Copyable>(
    _ path: @autoclosure () -> String, _ body: () throws(SystemCallError) -> R
) throws(AssetsError) -> R {
    do throws(SystemCallError) { return try body() } catch { throw .reading(path(), error) }
}
