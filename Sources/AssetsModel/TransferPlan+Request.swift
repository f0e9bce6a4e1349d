// What an attempt asks for: the whole file, what is missing of it, or nothing.

extension TransferPlan {
    /// Fields that the connection needs for itself.
    static let ownFields = [
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

    func checkedAddress() throws(DownloadFailure) -> WebAddress {
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

    func checkRequest() throws(DownloadFailure) {
        if let problem = RequestFields.problem(method: order.method, headers: order.headers) {
            throw DownloadFailure(AssetsError(.downloadFailedToStart, problem))
        }
    }

    // MARK: What is there

    /// What stands beside the bytes, with what the row knows of stable storage if it is about the same bytes.
    static func resume(_ order: Order, _ partial: Partial) -> ResumePoint? {
        guard let note = partial.note else { return order.resume }
        var resume = note.point
        if let row = order.resume, !note.isNewer(than: row), label(of: row, in: order) == label(of: resume, in: order) {
            resume.syncedOffset = row.syncedOffset
            // Written later, in an epoch in which nothing could be put beside the bytes.
            if row.storageEpoch == partial.storageEpoch { resume.storageEpoch = row.storageEpoch }
            resume.digest = resume.digest ?? row.digest
            resume.isSecondTry = resume.isSecondTry || row.isSecondTry
        }
        return resume
    }

    /// How much of the partial file is surely the beginning of the version that was noted.
    mutating func startOffset() -> Int64 {
        guard partial.length > 0 else { return 0 }
        guard isResumable, let resume, Self.label(of: resume, in: order) != nil else {
            return startOver("nothing names the version of the bytes that are there")
        }
        guard partial.note != nil, resume.syncedOffset >= 0, resume.total >= 0,
            resume.total == 0 || resume.syncedOffset <= resume.total, partial.length >= resume.syncedOffset
        else { return startOver("the bytes on the disk are not those that were noted") }
        let isSameEpoch = resume.storageEpoch == partial.storageEpoch
        let trusted = isSameEpoch ? partial.length : resume.syncedOffset
        guard resume.total == 0 || trusted <= resume.total else {
            return startOver("there are more bytes on the disk than the file has")
        }
        if trusted == 0 { return startOver("nothing of it was on stable storage when the device stopped") }
        return trusted
    }

    private mutating func startOver(_ why: String) -> Int64 {
        lost = why
        return 0
    }

    /// What the version of a note is called; nil when nothing can tell it from another. Without tag and date a digest
    /// does: the bytes are compared with it at the end, and until then at least the total must stay the same.
    static func label(of resume: ResumePoint, in order: Order) -> String? {
        if let validator = resume.etag ?? resume.lastModified { return validator }
        if let declared = order.digest { return resume.total > 0 ? declared.text : nil }
        return resume.digest?.text
    }

    /// All bytes of the noted version are there: nobody has to be asked for anything.
    mutating func completeAlready(_ resume: ResumePoint) -> Action {
        var start = Start(
            offset: resume.total, total: resume.total, etag: resume.etag, lastModified: resume.lastModified)
        start.digest = resume.digest
        return finish(checked(start), resume.total)
    }

    // MARK: Requests

    mutating func ask(_ ask: Ask) -> Action {
        guard let address else { preconditionFailure("no address in \(state)") }
        state = .asking(ask)
        return .request(hop(to: address, ask))
    }

    mutating func hop(to address: WebAddress, _ ask: Ask) -> Hop {
        var fields = headers
        if let answer = authentication.field(for: address, method: method) {
            // What the app sends by itself has been refused, or is not as new.
            fields.removeAll { ASCIIText.isEqual($0.name, answer.name) }
            fields.append(answer)
        }
        fields.append(HeaderField(name: "Accept-Encoding", value: "identity"))
        if ask.offset > 0 {
            fields.append(HeaderField(name: "Range", value: "bytes=\(ask.offset)-"))
            if !ask.isBare, let validator = resume.flatMap({ $0.etag ?? $0.lastModified }) {
                fields.append(HeaderField(name: "If-Range", value: validator))
            }
        }
        return Hop(
            address: address, method: method, headers: fields, sendsBody: sendsBody,
            allowsHTTP: address.scheme == .http, pins: order.pins(address.host))
    }
}
