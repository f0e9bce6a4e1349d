// The exit status and the meaning of every code that the service answers with.
internal import AssetsModel
internal import CommandLineKit

/// Error codes as exit statuses. Numbers above 9 stand for a code each, so that scripts can tell them apart.
enum ErrorTable {
    /// The exit status for a code of the wire; a code this tool does not know is an ordinary failure.
    static func status(for code: Int) -> Int32 {
        AssetsError.Code(rawValue: code).map { row($0).status } ?? ExitStatus.failed
    }

    /// Every exit status once, lowest first.
    static var exitStatuses: [ExitStatusRow] {
        let general = [
            ExitStatusRow(ExitStatus.done, "Done."),
            ExitStatusRow(
                ExitStatus.failed, "Failed, or the launch gate is shut (code 1006); the message names the code."),
            ExitStatusRow(ExitStatus.usage, "The command line was wrong (code 1000)."),
            ExitStatusRow(ExitStatus.noService, "No service answers."),
            ExitStatusRow(ExitStatus.interrupted, "Ended by Ctrl-C."),
            ExitStatusRow(rule, "The download manager refused (codes below 300, those of BAErrorCode)."),
        ]
        let special = AssetsError.Code.allCases.filter { $0.rawValue >= 1000 }.map { ($0, row($0)) }
            .filter { !general.map(\.status).contains($0.1.status) }
            .map { ExitStatusRow($0.1.status, "\($0.1.meaning) (code \($0.0.rawValue)).") }
        return (general + special).sorted { $0.status < $1.status }
    }

    private static let rule: Int32 = 10

    private static func row(_ code: AssetsError.Code) -> (status: Int32, meaning: String) {
        switch code {
        case .callFromExtensionNotAllowed, .callFromInactiveProcessNotAllowed, .callerConnectionNotAccepted,
            .callerConnectionInvalid, .downloadAlreadyScheduled, .downloadNotScheduled, .downloadFailedToStart,
            .downloadAlreadyFailed, .essentialDownloadNotPermitted, .backgroundActivityProhibited,
            .wouldExceedAllowance, .downloadDoesNotExist, .disallowedByDomain, .disallowedByAllowance,
            .allowanceExceeded, .notPermittedBeforeLaunch:
            (rule, "The download manager refused")
        case .usage: (ExitStatus.usage, "The command line was wrong")
        case .bundleInvalid: (11, "The app bundle is not valid")
        case .archiveInvalid: (12, "The archive is not valid")
        case .sourceUnreachable: (13, "The app to install could not be read or fetched")
        case .alreadyInstalled: (14, "The app is installed already")
        case .notInstalled: (15, "No such app is installed")
        case .gateShut: (ExitStatus.failed, "The launch gate is shut")
        case .busy: (17, "The app or the device is busy with something else")
        case .developerModeOff: (18, "This needs Developer Mode")
        case .deviceUnusable: (19, "The device cannot be used")
        case .storageFull: (20, "No space is left")
        case .storageFailed: (21, "Storage failed")
        case .cancelled: (22, "Cancelled by somebody else")
        case .limitReached: (23, "A limit of the service was reached")
        case .internal: (ExitStatus.failed, "A fault of the service itself")
        }
    }
}
