// What a transport tells of a transfer, and what a transfer's attempt comes to.

/// The head of a response.
package struct TransportHead: Hashable, Sendable {
    package var status: Int
    package var headers: [HeaderField]
    /// As in the status line: "1.1".
    package var httpVersion: String

    package init(status: Int, headers: [HeaderField] = [], httpVersion: String = "1.1") {
        self.status = status
        self.headers = headers
        self.httpVersion = httpVersion
    }

    /// The value of a field that is sent once; nil when it is missing or sent with different values.
    package func value(of name: String) -> String? {
        var found: String?
        for field in headers where ASCIIText.isEqual(field.name, name) {
            if let found, found != field.value { return nil }
            found = field.value
        }
        return found
    }
}

/// Why a transport ended without the whole response.
package struct TransportFailure: Error, Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The host's name has no address, or nobody answers who could tell.
        case resolve
        case connect
        /// No secure connection: the handshake failed.
        case tls
        /// The server could not prove who it is.
        case certificate
        /// The proxy cannot be reached or does not let us through.
        case proxy
        /// The connection broke.
        case reset
        /// The connection was not there in time.
        case timeout
        /// Too few bytes for too long.
        case stall
        /// The response ended before its announced length.
        case partial
        /// Not HTTP as it should be.
        case `protocol`
        /// This process has no memory for it now.
        case memory
        /// Such a request cannot be made.
        case invalid
        case cancelled
        case other
    }
    package var kind: Kind
    /// The number that `NSURLErrorDomain` has for it.
    package var code: Int
    package var text: String

    package init(kind: Kind, code: Int, text: String) {
        self.kind = kind
        self.code = code
        self.text = text
    }
}

/// Numbers of `NSURLErrorDomain` that the service reports.
package enum URLErrorCode {
    package static let unknown = -1
    package static let cancelled = -999
    package static let badURL = -1000
    package static let timedOut = -1001
    package static let cannotFindHost = -1003
    package static let cannotConnectToHost = -1004
    package static let networkConnectionLost = -1005
    package static let tooManyRedirects = -1007
    package static let notConnectedToInternet = -1009
    package static let redirectToNonExistentLocation = -1010
    package static let badServerResponse = -1011
    package static let userAuthenticationRequired = -1013
    package static let requiresSecureConnection = -1022
    package static let fileDoesNotExist = -1100
    package static let noPermissionsToReadFile = -1102
    package static let secureConnectionFailed = -1200
    package static let serverCertificateUntrusted = -1202
    package static let cannotWriteToFile = -3003
}

/// An attempt that ended without the file although another one may succeed.
package struct Interruption: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// The server cannot be reached: no network, no such name, no connection, no trusted connection.
        case unreachable
        /// The server is there and asks to come back: 408, 425, 429, 5xx.
        case server
        /// The response broke off, stalled or made no sense.
        case broken
        /// The file cannot be written here and now.
        case storage
    }
    package var kind: Kind
    package var reason: Reason
    /// What the server asked for.
    package var retryAfter: Duration?
    /// Whether this attempt brought bytes of the file that were not there before it. Those that come again, because the server
    /// sends no parts or no such version, bring nobody further.
    package var hasAdvanced: Bool
    /// What to report should there be no other attempt.
    package var failure: DownloadFailure
    /// It can go on once so many bytes are free on the disk; nil where that is not known, or not what it lacks.
    package var wantedFree: Int64?

    package init(
        kind: Kind, reason: Reason, retryAfter: Duration? = nil, hasAdvanced: Bool = false, failure: DownloadFailure,
        wantedFree: Int64? = nil
    ) {
        self.kind = kind
        self.reason = reason
        self.retryAfter = retryAfter
        self.hasAdvanced = hasAdvanced
        self.failure = failure
        self.wantedFree = wantedFree
    }

    /// An attempt that was not even made because the device has no network.
    package static let offline = Interruption(
        kind: .unreachable, reason: .offline,
        failure: DownloadFailure(
            domain: .url, code: URLErrorCode.notConnectedToInternet, reason: "the device has no network"))
}
