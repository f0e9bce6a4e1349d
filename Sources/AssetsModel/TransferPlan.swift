// How one attempt of a download goes: what is asked for, what the answers mean, when two versions would be mixed.

/// The rules of one attempt. Bytes reach the partial file only after `.take`, and only of one version of the resource.
package struct TransferPlan: Sendable {
    /// What is to be fetched, and under which conditions.
    package struct Order: Sendable {
        package var url: String
        package var method = "GET"
        package var headers: [HeaderField] = []
        package var hasBody = false
        /// What was last written down of the partial file.
        package var resume: ResumePoint?
        /// Bytes announced; 0 when unknown.
        package var expectedSize: Int64 = 0
        package var sizeMustMatch = false
        package var sizeLimit: Int64?
        /// What an extension reads to know what there is: nobody writes that as a page, whatever its URL's name.
        package var isManifest = false
        /// What the app says that the file comes to.
        package var digest: ContentDigest?
        package var allowsLoopbackHTTP = false
        /// What is known for servers that ask who asks.
        package var authentication = TransferAuthentication()
        /// The public keys that a host must have one of; none: any that is trusted.
        package var pins: @Sendable (String) -> [String] = { _ in [] }
        /// Whether a redirect may lead to a host.
        package var admits: @Sendable (String) -> Bool = { _ in true }
        package init(url: String) { self.url = url }
    }

    /// What is found of the partial file before the attempt.
    package struct Partial: Hashable, Sendable {
        package var length: Int64
        /// What stands beside its bytes, as `TransferPlan.note(after:)` was when the last of them were taken.
        package var note: PartialNote?
        package var storageEpoch: String
        package init(length: Int64, note: PartialNote?, storageEpoch: String) {
            self.length = length
            self.note = note
            self.storageEpoch = storageEpoch
        }
    }

    /// One request.
    package struct Hop: Hashable, Sendable {
        package var address: WebAddress
        package var method: String
        package var headers: [HeaderField]
        package var sendsBody: Bool
        package var allowsHTTP: Bool
        package var pins: [String] = []

        package var url: String { address.url }
    }

    /// From where on bytes are taken, and of what.
    package struct Start: Hashable, Sendable {
        package var offset: Int64
        /// Bytes of the whole; 0 when the server does not say.
        package var total: Int64
        /// The byte of the file behind the last that this answer brings; 0 when the server does not say.
        package var end: Int64
        package var etag: String?
        package var lastModified: String?
        /// What the server says that the whole comes to.
        package var digest: ContentDigest?
        /// With what the bytes are compared at the end; nil where nobody said anything of them.
        package var check: DigestCheck?
        /// Names the version.
        package var label: String? {
            if let validator = etag ?? lastModified { return validator }
            guard let check, check.from == 0 else { return nil }
            return check.expected.text
        }

        package init(offset: Int64, total: Int64, etag: String?, lastModified: String?) {
            self.offset = offset
            self.total = total
            end = total
            self.etag = etag
            self.lastModified = lastModified
        }
    }

    /// What bytes must come to.
    package struct DigestCheck: Hashable, Sendable {
        package var expected: ContentDigest
        /// The first byte of those that count; they go on to the end of the file.
        package var from: Int64
        /// The app's word; else the server's.
        package var isDeclared: Bool
        package init(expected: ContentDigest, from: Int64, isDeclared: Bool) {
            self.expected = expected
            self.from = from
            self.isDeclared = isDeclared
        }
    }

    package enum Action: Hashable, Sendable {
        /// End a request that still runs and send this one. The file keeps its bytes until something is taken.
        case request(Hop)
        /// Cut the file back to the offset, put `note(after:)` beside it; what comes now belongs there.
        case take(Start)
        case append
        /// Go on listening; these bytes are of no interest.
        case ignore
        /// The file has all its bytes, so many; say by `checked` what they come to.
        case check(DigestCheck, length: Int64)
        /// The file has all its bytes, so many, and they are right.
        case complete(length: Int64)
        case interrupt(Interruption)
        case refuse(DownloadFailure, Reason)
        /// Nothing goes on until somebody has answered this; the file keeps its bytes.
        case challenge(ServerChallenge)
    }

    /// What a request asks for.
    struct Ask: Hashable, Sendable {
        /// The first byte wanted.
        var offset: Int64
        /// The answer is not tied to a version by If-Range.
        var isBare = false
    }

    enum State: Hashable, Sendable {
        case ready
        case asking(Ask)
        /// The body of a redirect comes; then the next request goes out.
        case draining(next: Hop, Ask, left: Int64)
        /// The first bytes of the body tell whether it is the file.
        case looking(Start, Doubt, saysPage: Bool)
        case taking(Start, length: Int64)
        /// All bytes are there; what they come to is being found out.
        case checking(Start, length: Int64)
        case done
    }

    let order: Order
    package let partial: Partial
    /// What is known of the bytes that are there.
    package let resume: ResumePoint?
    var state = State.ready
    var address: WebAddress?
    var redirects = 0
    var method: String
    var sendsBody: Bool
    /// What is left of the app's header fields on the way.
    var headers: [HeaderField]
    var authentication: TransferAuthentication
    /// The credential with which the server sends the file, and where.
    package internal(set) var accepted: SpaceCredential?
    /// Bytes of the file that this attempt brought.
    package internal(set) var received: Int64 = 0
    /// Some of them were not there before it.
    package internal(set) var hasAdvanced = false
    /// The server sends parts: it says so, or did.
    var takesRanges = false
    /// The version that the file belongs to, once the server has told.
    package internal(set) var start: Start?
    /// Why bytes that were there are not gone on with.
    var lost: String?
    /// The bytes that came begin as a web page does.
    var isPage = false
    /// The bytes before these did not come to their digest.
    var isSecondTry: Bool

    package init(_ order: Order, partial: Partial) {
        self.order = order
        self.partial = partial
        resume = Self.resume(order, partial)
        method = order.method
        sendsBody = order.hasBody
        headers = order.headers
        authentication = order.authentication
        isSecondTry = resume?.isSecondTry ?? false
    }

    /// Why what was on the disk counts for nothing; nil when it does, or when there was nothing.
    package var whyStartedOver: String? { partial.length > 0 && start?.offset == 0 ? lost : nil }

    /// The first request.
    package mutating func begin() -> Action {
        guard case .ready = state else { preconditionFailure("begin in \(state)") }
        do throws(DownloadFailure) {
            let address = try checkedAddress()
            try checkRequest()
            self.address = address
            headers.removeAll { field in Self.ownFields.contains { ASCIIText.isEqual($0, field.name) } }
            let offset = startOffset()
            if offset > 0, let resume {
                if offset == resume.total { return completeAlready(resume) }
                return ask(Ask(offset: offset, isBare: resume.etag == nil && resume.lastModified == nil))
            }
            return ask(Ask(offset: 0))
        } catch {
            state = .done
            return .refuse(error, .invalid)
        }
    }

    /// Bytes of a body came.
    package mutating func body(_ count: Int64) -> Action {
        switch state {
        case .draining(let next, let ask, let left):
            guard count > left else {
                state = .draining(next: next, ask, left: left - count)
                return .ignore
            }
            state = .asking(ask)
            return .request(next)
        case .taking(let start, let length):
            return take(count, start, length)
        case .checking, .done:
            return .ignore
        case .looking:
            preconditionFailure("a body in \(state)")
        case .ready, .asking:
            return interrupt(.broken, .http, URLErrorCode.badServerResponse, "the server sent bytes without a head")
        }
    }

    /// The response ended.
    package mutating func end(_ failure: TransportFailure?) -> Action {
        switch state {
        case .draining(let next, let ask, _):
            // The answer was understood, whatever became of its text.
            state = .asking(ask)
            return .request(next)
        case .taking(let start, let length):
            if let failure { return interrupt(failure) }
            return finish(start, length)
        case .ready, .asking, .looking:
            if let failure { return interrupt(failure) }
            return interrupt(.broken, .http, URLErrorCode.badServerResponse, "the server sent no answer")
        case .checking, .done:
            return .ignore
        }
    }

    /// What the whole file was found to come to.
    package var confirmedDigest: ContentDigest? {
        guard case .done = state, let check = start?.check, check.from == 0 else { return nil }
        return check.expected
    }

    /// Whether the attempt may stop where it is: another one goes on there without fetching a byte again.
    package var canStop: Bool {
        guard isResumable, takesRanges, let start else { return false }
        return start.etag != nil || start.lastModified != nil
    }

    /// What has to stand beside the bytes that are taken; nil when their version has no name.
    ///
    /// - Parameter synced: Bytes that this attempt has said to be synced before it took these.
    package func note(after synced: Int64) -> PartialNote? {
        guard let point = resumePoint(syncedOffset: 0), let start else { return nil }
        if start.offset > 0 { return PartialNote(point, staleOffset: partial.note?.staleOffset ?? 0) }
        let row = order.resume.flatMap { Self.label(of: $0, in: order) == Self.label(of: point, in: order) ? $0 : nil }
        return PartialNote(point, staleOffset: max(synced, row?.syncedOffset ?? 0))
    }

    /// What to write down of the partial file when so many bytes are on stable storage; nil when its version has no name.
    package func resumePoint(syncedOffset: Int64) -> ResumePoint? {
        guard isResumable, let start, start.label != nil else { return nil }
        return ResumePoint(
            etag: start.etag, lastModified: start.lastModified, total: start.total, syncedOffset: syncedOffset,
            storageEpoch: partial.storageEpoch, digest: start.digest, isSecondTry: isSecondTry)
    }
}

// MARK: Failures

extension TransferPlan {
    mutating func interrupt(
        _ kind: Interruption.Kind, _ reason: Reason, _ code: Int, _ text: String, retryAfter: Duration? = nil
    ) -> Action {
        state = .done
        return .interrupt(
            Interruption(
                kind: kind, reason: reason, retryAfter: retryAfter, hasAdvanced: hasAdvanced,
                failure: DownloadFailure(domain: .url, code: code, reason: text)))
    }

    private mutating func interrupt(_ failure: TransportFailure) -> Action {
        switch failure.meaning {
        case .interrupts(let kind, let reason):
            return interrupt(kind, reason, failure.code, failure.text)
        case .refuses(let reason):
            state = .done
            return .refuse(DownloadFailure(domain: .url, code: failure.code, reason: failure.text), reason)
        }
    }
}
