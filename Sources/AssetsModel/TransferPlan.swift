// How one attempt of a download goes: what is asked for, what the answers mean, when two versions would be mixed.

/// The rules of one attempt. Bytes reach the partial file only after `.take`, and only of one version of the resource.
package struct TransferPlan: Sendable {
    /// What is to be fetched, and under which conditions.
    package struct Order: Sendable {
        package var url: String
        package var method = "GET"
        package var headers: [HeaderField] = []
        package var hasBody = false
        package var resume: ResumePoint?
        /// Bytes announced; 0 when unknown.
        package var expectedSize: Int64 = 0
        package var sizeMustMatch = false
        package var sizeLimit: Int64?
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
        /// The version that its bytes belong to, as `Start.label` was when they were taken.
        package var label: String?
        package var storageEpoch: String
        package init(length: Int64, label: String?, storageEpoch: String) {
            self.length = length
            self.label = label
            self.storageEpoch = storageEpoch
        }
    }

    /// One request.
    package struct Hop: Hashable, Sendable {
        package var url: String
        package var method: String
        package var headers: [HeaderField]
        package var sendsBody: Bool
        package var allowsHTTP: Bool
        package var pins: [String] = []
    }

    /// From where on bytes are taken, and of what.
    package struct Start: Hashable, Sendable {
        package var offset: Int64
        /// Bytes of the whole; 0 when the server does not say.
        package var total: Int64
        package var etag: String?
        package var lastModified: String?
        /// Names the version; kept beside the partial file, so that a note of another version never fits it.
        package var label: String? { etag ?? lastModified }

        package init(offset: Int64, total: Int64, etag: String?, lastModified: String?) {
            self.offset = offset
            self.total = total
            self.etag = etag
            self.lastModified = lastModified
        }
    }

    package enum Action: Hashable, Sendable {
        /// End a request that still runs, cut the file back to so many bytes and send this one.
        case request(Hop, keeping: Int64)
        /// Cut the file back to the offset, label it; what comes now belongs there.
        case take(Start)
        case append
        /// Go on listening; these bytes are of no interest.
        case ignore
        /// The file has all its bytes, so many.
        case complete(length: Int64)
        case interrupt(Interruption)
        case refuse(DownloadFailure, Reason)
        /// Nothing goes on until somebody has answered this; the file keeps its bytes.
        case challenge(ServerChallenge)
    }

    enum State: Hashable, Sendable {
        case ready
        /// A request is out that asks for the bytes from `offset` on.
        case asking(offset: Int64)
        /// The body of a redirect comes; then the next request goes out.
        case draining(next: Hop, offset: Int64, left: Int64)
        case taking(Start, length: Int64)
        case done
    }

    let order: Order
    let partial: Partial
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
    /// The version that the file belongs to, once the server has told.
    package internal(set) var start: Start?

    package init(_ order: Order, partial: Partial) {
        self.order = order
        self.partial = partial
        method = order.method
        sendsBody = order.hasBody
        headers = order.headers
        authentication = order.authentication
    }

    /// The first request.
    package mutating func begin() -> Action {
        guard case .ready = state else { preconditionFailure("begin in \(state)") }
        do throws(DownloadFailure) {
            let address = try checkedAddress()
            try checkRequest()
            self.address = address
            headers.removeAll { field in Self.ownFields.contains { ASCIIText.isEqual($0, field.name) } }
            return ask(from: startOffset())
        } catch {
            state = .done
            return .refuse(error, .invalid)
        }
    }

    /// Bytes of a body came.
    package mutating func body(_ count: Int64) -> Action {
        switch state {
        case .draining(let next, let offset, let left):
            guard count > left else {
                state = .draining(next: next, offset: offset, left: left - count)
                return .ignore
            }
            state = .asking(offset: offset)
            return .request(next, keeping: offset)
        case .taking(let start, let length):
            return take(count, start, length)
        case .done:
            return .ignore
        case .ready, .asking:
            return interrupt(.broken, .http, URLErrorCode.badServerResponse, "the server sent bytes without a head")
        }
    }

    /// The response ended.
    package mutating func end(_ failure: TransportFailure?) -> Action {
        switch state {
        case .draining(let next, let offset, _):
            // The answer was understood, whatever became of its text.
            state = .asking(offset: offset)
            return .request(next, keeping: offset)
        case .taking(let start, let length):
            if let failure { return interrupt(failure) }
            return finish(start, length)
        case .ready, .asking:
            if let failure { return interrupt(failure) }
            return interrupt(.broken, .http, URLErrorCode.badServerResponse, "the server sent no answer")
        case .done:
            return .ignore
        }
    }

    /// What to note of the partial file when so many bytes are on stable storage; nil when its version has no name.
    package func resumePoint(syncedOffset: Int64) -> ResumePoint? {
        guard isResumable, let start, start.label != nil else { return nil }
        return ResumePoint(
            etag: start.etag, lastModified: start.lastModified, total: start.total, syncedOffset: syncedOffset,
            storageEpoch: partial.storageEpoch)
    }
}

// MARK: The first request

extension TransferPlan {
    /// Fields that the connection needs for itself.
    private static let ownFields = [
        "Host", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "Content-Length", "Expect", "Accept-Encoding", "HTTP2-Settings",
    ]
    /// Fields with which the app itself asks for a part or a version.
    private static let conditionalFields = [
        "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since",
    ]

    var asksForPart: Bool { order.headers.contains { ASCIIText.isEqual($0.name, "Range") } }

    /// Only plain requests can be made a second time for the rest.
    var isResumable: Bool {
        order.method == "GET" && !order.hasBody
            && !order.headers.contains { field in
                Self.conditionalFields.contains { ASCIIText.isEqual($0, field.name) }
            }
    }

    private func checkedAddress() throws(DownloadFailure) -> WebAddress {
        let address: WebAddress
        do {
            address = try WebAddress(order.url)
        } catch {
            throw DownloadFailure(domain: .url, code: URLErrorCode.badURL, reason: "not an https URL")
        }
        guard isSecure(address) else {
            throw DownloadFailure(
                domain: .url, code: URLErrorCode.requiresSecureConnection, reason: "only https is allowed")
        }
        return address
    }

    func isSecure(_ address: WebAddress) -> Bool {
        address.scheme == .https || order.allowsLoopbackHTTP && RequestOrigin.isLoopback(address.host)
    }

    private func checkRequest() throws(DownloadFailure) {
        if let problem = RequestFields.problem(method: order.method, headers: order.headers) {
            throw DownloadFailure(AssetsError(.downloadFailedToStart, problem))
        }
    }

    /// How much of the partial file is surely the beginning of the version that will be asked for.
    private func startOffset() -> Int64 {
        guard isResumable, let resume = order.resume, let label = resume.etag ?? resume.lastModified,
            partial.label == label, resume.syncedOffset >= 0, resume.total >= 0,
            resume.total == 0 || resume.syncedOffset <= resume.total
        else { return 0 }
        // An earlier attempt that asked for the last byte of a complete file has cut it off.
        let synced = resume.total > 0 ? min(resume.syncedOffset, resume.total - 1) : resume.syncedOffset
        guard partial.length >= synced else { return 0 }
        let isSameEpoch = resume.storageEpoch == partial.storageEpoch
        let trusted = isSameEpoch ? partial.length : synced
        guard resume.total > 0 else { return trusted }
        // Beyond its end a file cannot be its version. Of a complete one the last byte is asked for again: the answer
        // tells whether the version is still the server's.
        return trusted > resume.total ? 0 : min(trusted, resume.total - 1)
    }

    mutating func ask(from offset: Int64) -> Action {
        guard let address else { preconditionFailure("no address in \(state)") }
        state = .asking(offset: offset)
        return .request(hop(to: address, offset: offset), keeping: offset)
    }

    mutating func hop(to address: WebAddress, offset: Int64) -> Hop {
        var fields = headers
        if let answer = authentication.field(for: address, method: method) {
            // What the app sends by itself has been refused, or is not as new.
            fields.removeAll { ASCIIText.isEqual($0.name, answer.name) }
            fields.append(answer)
        }
        fields.append(HeaderField(name: "Accept-Encoding", value: "identity"))
        if offset > 0, let validator = order.resume.flatMap({ $0.etag ?? $0.lastModified }) {
            fields.append(HeaderField(name: "Range", value: "bytes=\(offset)-"))
            fields.append(HeaderField(name: "If-Range", value: validator))
        }
        return Hop(
            url: address.url, method: method, headers: fields, sendsBody: sendsBody,
            allowsHTTP: address.scheme == .http, pins: order.pins(address.host))
    }
}

// MARK: Bytes

extension TransferPlan {
    private mutating func take(_ count: Int64, _ start: Start, _ length: Int64) -> Action {
        let (sum, overflow) = length.addingReportingOverflow(count)
        guard !overflow, start.total == 0 || sum <= start.total else {
            return interrupt(
                .broken, .http, URLErrorCode.badServerResponse, "the server sent more bytes than it announced")
        }
        if let refusal = refusal(ofLength: sum) { return refusal }
        received += count
        state = .taking(start, length: sum)
        return .append
    }

    private mutating func finish(_ start: Start, _ length: Int64) -> Action {
        guard start.total == 0 || length == start.total else {
            return interrupt(
                .broken, .network, URLErrorCode.networkConnectionLost,
                "the response ended after \(length) of \(start.total) bytes")
        }
        if let refusal = refusal(ofTotal: length) { return refusal }
        state = .done
        return .complete(length: length)
    }

    /// A file of this size is not wanted.
    mutating func refusal(ofTotal total: Int64) -> Action? {
        if let limit = order.sizeLimit, total > limit {
            return refuseLength(.disallowedByAllowance, "the file has \(total) bytes, \(limit) are allowed")
        }
        guard order.sizeMustMatch, order.expectedSize > 0, total != order.expectedSize else { return nil }
        return refuseSize("the server's file has \(total) bytes, \(order.expectedSize) were announced")
    }

    /// So many bytes are already too many.
    private mutating func refusal(ofLength length: Int64) -> Action? {
        if let limit = order.sizeLimit, length > limit {
            return refuseLength(.allowanceExceeded, "the file is larger than the \(limit) bytes that are allowed")
        }
        guard order.sizeMustMatch, order.expectedSize > 0, length > order.expectedSize else { return nil }
        return refuseSize("the server's file is larger than the \(order.expectedSize) bytes announced")
    }

    private mutating func refuseLength(_ code: AssetsError.Code, _ why: String) -> Action {
        state = .done
        return .refuse(DownloadFailure(AssetsError(code, why)), .allowance)
    }

    private mutating func refuseSize(_ why: String) -> Action {
        state = .done
        return .refuse(DownloadFailure(domain: .url, code: URLErrorCode.badServerResponse, reason: why), .size)
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
                kind: kind, reason: reason, retryAfter: retryAfter, receivedAny: received > 0,
                failure: DownloadFailure(domain: .url, code: code, reason: text)))
    }

    private mutating func interrupt(_ failure: TransportFailure) -> Action {
        switch failure.kind {
        case .resolve, .connect, .tls, .timeout:
            let isOffline = failure.code == URLErrorCode.notConnectedToInternet
            return interrupt(.unreachable, isOffline ? .offline : .network, failure.code, failure.text)
        case .stall:
            return interrupt(.broken, .stall, failure.code, failure.text)
        case .reset, .partial, .cancelled:
            return interrupt(.broken, .network, failure.code, failure.text)
        case .protocol:
            return interrupt(.broken, .http, failure.code, failure.text)
        case .other:
            guard failure.code == URLErrorCode.badURL else {
                return interrupt(.broken, .network, failure.code, failure.text)
            }
            state = .done
            return .refuse(DownloadFailure(domain: .url, code: failure.code, reason: failure.text), .invalid)
        }
    }
}
