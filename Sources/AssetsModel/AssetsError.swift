// Everything the service refuses, with the code that clients act on.

/// A refusal or failure with a code to act on, a reason to read and the next step.
package struct AssetsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Codes below 300 are those of `BAErrorCode`; those from 1000 on are of the service and its tools.
    package enum Code: Int, Hashable, Sendable, CaseIterable {
        case callFromExtensionNotAllowed = 50
        case callFromInactiveProcessNotAllowed = 51
        case callerConnectionNotAccepted = 55
        case callerConnectionInvalid = 56
        case downloadAlreadyScheduled = 100
        case downloadNotScheduled = 101
        case downloadFailedToStart = 102
        case downloadAlreadyFailed = 103
        case essentialDownloadNotPermitted = 109
        case backgroundActivityProhibited = 111
        case wouldExceedAllowance = 112
        case downloadDoesNotExist = 113
        case disallowedByDomain = 202
        case disallowedByAllowance = 203
        case allowanceExceeded = 204
        case notPermittedBeforeLaunch = 206

        case usage = 1000
        case bundleInvalid = 1001
        case archiveInvalid = 1002
        case sourceUnreachable = 1003
        case alreadyInstalled = 1004
        case notInstalled = 1005
        case gateShut = 1006
        case busy = 1007
        case developerModeOff = 1008
        case deviceUnusable = 1009
        case storageFull = 1010
        case storageFailed = 1011
        case cancelled = 1012
        case limitReached = 1013
        case `internal` = 1099
    }

    package var code: Code
    /// Names the thing and says why, as one sentence without a full stop.
    package var reason: String
    /// What to do next, as one sentence without a full stop; empty where there is nothing to do.
    package var remedy: String

    package init(_ code: Code, _ reason: String, remedy: String = "") {
        self.code = code
        self.reason = reason
        self.remedy = remedy
    }

    package var description: String { remedy.isEmpty ? reason : "\(reason); \(remedy)" }
}

/// Why a download ended without its file.
package struct DownloadFailure: Error, Hashable, Sendable {
    package enum Domain: String, Hashable, Sendable, Codable {
        /// `BAErrorDomain`: a rule of the service.
        case assets = "BAErrorDomain"
        /// `NSURLErrorDomain`: the transport.
        case url = "NSURLErrorDomain"
    }
    package var domain: Domain
    package var code: Int
    package var reason: String

    package init(domain: Domain, code: Int, reason: String) {
        self.domain = domain
        self.code = code
        self.reason = reason
    }

    package init(_ error: AssetsError) {
        self.init(domain: .assets, code: error.code.rawValue, reason: error.description)
    }
}
