// The rule of admission: which downloads may enter the queue.

/// Checks a download against its app's declarations and restrictions.
package struct Admission: Sendable {
    private let app: AppRecord
    private let allowsLoopbackHTTP: Bool
    /// nil when no restriction holds.
    private let domains: DomainAllowList?
    /// What was admitted before the first launch, including what this value admitted.
    package internal(set) var ledger: AllowanceLedger
    /// Bytes that somebody else is going to charge.
    private var reserved = AllowanceLedger()

    /// `allowsLoopbackHTTP`: Developer Mode.
    package init(app: AppRecord, allowsLoopbackHTTP: Bool) {
        self.app = app
        self.allowsLoopbackHTTP = allowsLoopbackHTTP
        domains = app.launchedAt == nil ? DomainAllowList(app.description.restrictions.allowedDomains) : nil
        ledger = app.ledger
    }

    /// The keys of Info.plist that bound the sums.
    static let essentialKey = "BAEssentialDownloadAllowance"
    static let otherKey = "BADownloadAllowance"

    /// Restrictions end with the first launch for good.
    package var isRestricted: Bool { app.launchedAt == nil }

    /// Non-essential bytes still allowed; nil when no restriction holds.
    package var remaining: Int64? {
        guard isRestricted else { return nil }
        let taken = saturatingSum(ledger.nonEssential, reserved.nonEssential)
        return max(0, app.description.restrictions.downloadAllowance - taken)
    }

    /// Essential bytes still allowed; nil when no restriction holds.
    package var essentialRemaining: Int64? {
        guard isRestricted else { return nil }
        let taken = saturatingSum(ledger.essential, reserved.essential)
        return max(0, (app.description.restrictions.essentialDownloadAllowance ?? 0) - taken)
    }

    /// True when redirects and requests may go to that host.
    package func admits(host: String) -> Bool { domains?.admits(host) ?? true }

    /// What the manager schedules.
    package mutating func schedule(_ request: DownloadRequest) throws(AssetsError) {
        guard !request.isEssential else {
            throw AssetsError(
                .essentialDownloadNotPermitted,
                "\(request.shownIdentifier): essential downloads can only be returned from an install or update request",
                remedy: "schedule removingEssential() instead")
        }
        try check(request)
        try charge(request)
    }

    /// The manifest counts against the essential allowance if that key is there, else against the download allowance.
    package mutating func chargeManifest(bytes: Int64) {
        if isRestricted { ledger = adding(manifestBytes: bytes, to: ledger) }
    }

    /// Keeps room for a manifest that is charged later.
    package mutating func reserveManifest(bytes: Int64) {
        if isRestricted { reserved = adding(manifestBytes: bytes, to: reserved) }
    }

    private func adding(manifestBytes bytes: Int64, to ledger: AllowanceLedger) -> AllowanceLedger {
        var ledger = ledger
        if app.description.restrictions.essentialDownloadAllowance != nil {
            ledger.essential = saturatingSum(ledger.essential, bytes)
        } else {
            ledger.nonEssential = saturatingSum(ledger.nonEssential, bytes)
        }
        return ledger
    }

    /// Non-essential bytes that arrived beyond what was announced.
    package mutating func chargeUnannounced(bytes: Int64) {
        if isRestricted { ledger.nonEssential = saturatingSum(ledger.nonEssential, bytes) }
    }

    /// Bytes that a manifest may have: what is left of the allowance that it counts against.
    package var manifestLimit: Int64 {
        let hasEssentialKey = app.description.restrictions.essentialDownloadAllowance != nil
        let left = hasEssentialKey ? essentialRemaining : remaining
        return min(PolicyNumbers.manifestMax, left ?? .max)
    }

    func check(_ request: DownloadRequest) throws(AssetsError) {
        func refuse(_ why: String, remedy: String = "") -> AssetsError {
            AssetsError(.downloadFailedToStart, "\(request.shownIdentifier): \(why)", remedy: remedy)
        }
        guard !request.identifier.isEmpty else { throw refuse("the identifier is empty") }
        guard request.identifier.utf8.count <= PolicyNumbers.identifierMax else {
            throw refuse("the identifier is longer than \(PolicyNumbers.identifierMax) bytes")
        }
        // It names files below the device directory.
        guard request.uniqueIdentifier.isCanonicalUUID else { throw refuse("the unique identifier is no UUID") }
        guard request.size >= 0 else { throw refuse("the file size \(request.size) is negative") }
        guard !request.isEssential || request.size > 0 else {
            throw refuse("an essential download needs its exact file size", remedy: "put the size into the manifest")
        }
        guard app.description.sharedGroups.contains(request.group) else {
            throw refuse(
                "the app group \(request.group.shortened) is not in the entitlements of both app and extension",
                remedy: "declare it in com.apple.security.application-groups of both")
        }
        if let sha256 = request.sha256, request.digest == nil {
            throw refuse(
                "the SHA-256 has \(sha256.count) bytes, not \(ContentDigest.Algorithm.sha256.byteCount)",
                remedy: "give the 32 bytes themselves, not their hexadecimal digits")
        }
        try checkSizes(of: request, refuse)
        let origin = try RequestOrigin(url: request.url, allowsLoopbackHTTP: allowsLoopbackHTTP)
        guard admits(host: origin.host) else {
            throw AssetsError(
                .disallowedByDomain,
                "\(request.shownIdentifier): the host \(origin.host) is not allowed before the first launch",
                remedy: "add it to BADownloadDomainAllowList")
        }
    }

    private func checkSizes(
        of request: DownloadRequest, _ refuse: (String, String) -> AssetsError
    ) throws(AssetsError) {
        guard request.url.utf8.count <= PolicyNumbers.urlMax else {
            throw refuse("the URL is longer than \(PolicyNumbers.urlMax) bytes", "")
        }
        guard request.body.count <= PolicyNumbers.requestBodyMax else {
            throw refuse("the request's body is larger than \(PolicyNumbers.requestBodyMax) bytes", "")
        }
        let headerBytes = request.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard request.headers.count <= PolicyNumbers.headerFieldsMax, headerBytes <= PolicyNumbers.headerBytesMax else {
            throw refuse("the request has too many or too long header fields", "")
        }
        if let problem = RequestFields.problem(method: request.method, headers: request.headers) {
            throw refuse(problem, "")
        }
    }

    private mutating func charge(_ request: DownloadRequest) throws(AssetsError) {
        guard isRestricted else { return }
        func refuse(_ key: String, _ left: Int64) -> AssetsError {
            AssetsError(
                .wouldExceedAllowance,
                "\(request.shownIdentifier): \(request.size) bytes, but \(left) bytes are left of \(key)",
                remedy: "raise \(key) in the app's Info.plist")
        }
        if request.isEssential {
            let left = essentialRemaining ?? 0
            guard request.size <= left else { throw refuse(Self.essentialKey, left) }
            ledger.essential = saturatingSum(ledger.essential, request.size)
        } else {
            let left = remaining ?? 0
            guard request.size <= left else { throw refuse(Self.otherKey, left) }
            ledger.nonEssential = saturatingSum(ledger.nonEssential, request.size)
        }
    }
}

extension DownloadRequest {
    /// The identifier as it can stand in a message.
    package var shownIdentifier: String {
        identifier.isEmpty ? "a download without identifier" : identifier.shortened
    }
}

extension String {
    /// Characters of an app's text in a message for people.
    private static let shownMax = 80

    /// As it can stand in a message for people.
    fileprivate var shortened: String { String(prefix(Self.shownMax)) }

    /// 36 characters, upper case, dashes in their places.
    fileprivate var isCanonicalUUID: Bool {
        utf8.count == 36
            && utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index)
                    ? byte == UInt8(ascii: "-") : (48...57).contains(byte) || (65...70).contains(byte)
            }
    }
}

func saturatingSum(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? .max : sum
}
