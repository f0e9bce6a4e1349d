// Switches over the framework's enumerations, with all cases and what is still to come.
import BackgroundAssets

extension BADownload.State {
    var title: String {
        switch self {
        case .created: return "New"
        case .waiting: return "Waiting"
        case .downloading: return "Downloading"
        case .finished: return "Ready"
        case .failed: return "Failed"
        @unknown default: return "Unknown (\(rawValue))"
        }
    }

    var isActive: Bool {
        switch self {
        case .waiting, .downloading: true
        default: false
        }
    }
}

extension BAContentRequest {
    var isUserVisible: Bool {
        switch self {
        case .install, .update: return true
        case .periodic, .languageChange: return false
        @unknown default: return false
        }
    }

    /// Written before there were changes of language: one case is missing, which is a warning only.
    var isInstallation: Bool {
        // expected-warning@+2 {{switch must be exhaustive}}
        // expected-note@+1 {{add missing case: '.languageChange'}}
        switch self {
        case .install: return true
        case .update, .periodic: return false
        @unknown default: return false
        }
    }
}

extension BAErrorCode {
    var isTemporary: Bool {
        switch self {
        case .callerConnectionInvalid, .callFromInactiveProcessNotAllowed, .downloadBackgroundActivityProhibited: true
        case .downloadInvalid, .callFromExtensionNotAllowed, .callerConnectionNotAccepted, .downloadAlreadyScheduled,
            .downloadNotScheduled, .downloadFailedToStart, .downloadAlreadyFailed,
            .downloadEssentialDownloadNotPermitted, .downloadWouldExceedAllowance, .downloadDoesNotExist,
            .sessionDownloadDisallowedByDomain, .sessionDownloadDisallowedByAllowance,
            .sessionDownloadAllowanceExceeded, .sessionDownloadNotPermittedBeforeAppLaunch:
            false
        @unknown default: false
        }
    }
}
