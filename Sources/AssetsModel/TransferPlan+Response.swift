// What the head of a response means for an attempt.

extension TransferPlan {
    /// The head of the response to the last request came.
    package mutating func head(_ head: TransportHead) -> Action {
        guard case .asking(let offset) = state else { return .ignore }
        switch head.status {
        case 200:
            return take(whole: head)
        case 206:
            return take(part: head, from: offset)
        case 301, 302, 303, 307, 308:
            return redirect(head, offset)
        case 401:
            return authenticate(head, offset)
        case 416 where offset > 0:
            return rangeRefused(head, offset)
        case 408, 425, 429, 500...599:
            return interrupt(
                .server, .http, head.status == 408 ? URLErrorCode.timedOut : URLErrorCode.badServerResponse,
                "the server answered \(head.status)", retryAfter: RetryAfter.delay(in: head))
        default:
            state = .done
            return .refuse(Self.failure(status: head.status), .http)
        }
    }

    private static func failure(status: Int) -> DownloadFailure {
        let code =
            switch status {
            case 407: URLErrorCode.userAuthenticationRequired
            case 403: URLErrorCode.noPermissionsToReadFile
            case 404, 410: URLErrorCode.fileDoesNotExist
            default: URLErrorCode.badServerResponse
            }
        return DownloadFailure(domain: .url, code: code, reason: "the server answered \(status)")
    }

    /// The server asks who asks: a credential that is known is tried in this attempt, else somebody has to say.
    private mutating func authenticate(_ head: TransportHead, _ offset: Int64) -> Action {
        guard let address else { preconditionFailure("no address in \(state)") }
        switch authentication.unauthorized(head, at: address) {
        case .repeatRequest:
            return follow(head, hop(to: address, offset: offset), offset)
        case .ask(let challenge):
            state = .done
            return .challenge(challenge)
        case .notSupported(let names):
            state = .done
            let why = names.isEmpty ? "does not say how to prove it" : "accepts only \(names)"
            return .refuse(
                DownloadFailure(
                    domain: .url, code: URLErrorCode.userAuthenticationRequired,
                    reason: "the server answered 401 and \(why)"), .challenge)
        }
    }

    /// The version from its first byte on, whether or not a part was asked for.
    private mutating func take(whole head: TransportHead) -> Action {
        take(from: 0, total: Self.contentLength(head), head)
    }

    private mutating func take(from offset: Int64, total: Int64, _ head: TransportHead) -> Action {
        if total > 0, let refusal = refusal(ofTotal: total) { return refusal }
        let start = Start(
            offset: offset, total: total, etag: Validator.strongTag(in: head),
            lastModified: Validator.strongDate(in: head))
        return take(start)
    }

    private mutating func take(_ start: Start) -> Action {
        self.start = start
        if let address, var entry = authentication.sent {
            entry.folder = address.folder
            accepted = entry
        }
        state = .taking(start, length: start.offset)
        return .take(start)
    }

    /// 0 when the length is not told or the body's end shows in another way.
    private static func contentLength(_ head: TransportHead) -> Int64 {
        guard !head.headers.contains(where: { ASCIIText.isEqual($0.name, "Transfer-Encoding") }) else { return 0 }
        return head.value(of: "Content-Length").flatMap { ASCIIText.number($0) } ?? 0
    }

    private mutating func take(part head: TransportHead, from offset: Int64) -> Action {
        guard offset > 0, let resume = order.resume else {
            // The app asked for a part: that part is its file.
            if asksForPart { return take(whole: head) }
            return interrupt(
                .broken, .http, URLErrorCode.badServerResponse, "the server sent a part that nobody asked for")
        }
        guard let range = head.value(of: "Content-Range").flatMap(ContentRange.init), let bytes = range.bytes,
            bytes.lowerBound == offset, let total = range.total ?? (resume.total > 0 ? resume.total : nil),
            bytes.upperBound < total, resume.total == 0 || total == resume.total, isSameVersion(head, as: resume)
        else { return ask(from: 0) }
        if let refusal = refusal(ofTotal: total) { return refusal }
        let start = Start(offset: offset, total: total, etag: resume.etag, lastModified: resume.lastModified)
        return take(start)
    }

    /// The server confirms the version. A date may be left out of the answer to If-Range, a tag may not.
    private func isSameVersion(_ head: TransportHead, as resume: ResumePoint) -> Bool {
        if let tag = resume.etag { return Validator.strongTag(in: head) == tag }
        let hasDate = head.headers.contains { ASCIIText.isEqual($0.name, "Last-Modified") }
        return hasDate ? head.value(of: "Last-Modified") == resume.lastModified : resume.total > 0
    }

    /// Nothing is left to send, if it is still the same file.
    private mutating func rangeRefused(_ head: TransportHead, _ offset: Int64) -> Action {
        guard let resume = order.resume,
            let range = head.value(of: "Content-Range").flatMap(ContentRange.init), range.total == offset,
            resume.etag != nil || head.value(of: "Last-Modified") != nil, isSameVersion(head, as: resume)
        else { return ask(from: 0) }
        if let refusal = refusal(ofTotal: offset) { return refusal }
        start = Start(offset: offset, total: offset, etag: resume.etag, lastModified: resume.lastModified)
        state = .done
        return .complete(length: offset)
    }

    private mutating func redirect(_ head: TransportHead, _ offset: Int64) -> Action {
        guard let from = address else { preconditionFailure("no address in \(state)") }
        redirects += 1
        guard redirects <= PolicyNumbers.redirectsMax else {
            return refuseRedirect(URLErrorCode.tooManyRedirects, "more than \(PolicyNumbers.redirectsMax) redirects")
        }
        guard let location = head.value(of: "Location"), location.utf8.count <= PolicyNumbers.urlMax,
            let target = try? from.resolving(location)
        else {
            return refuseRedirect(
                URLErrorCode.redirectToNonExistentLocation, "the server redirects to something that is no https URL")
        }
        guard isSecure(target) else {
            return refuseRedirect(
                URLErrorCode.requiresSecureConnection, "the server redirects to \(target.host) without https")
        }
        guard order.admits(target.host) else {
            state = .done
            let error = AssetsError(
                .disallowedByDomain, "the server redirects to \(target.host), which is not allowed",
                remedy: "add it to BADownloadDomainAllowList")
            return .refuse(DownloadFailure(error), .domain)
        }
        changeMethod(status: head.status)
        if !target.isSameOrigin(as: from) { dropPrivateFields() }
        address = target
        return follow(head, hop(to: target, offset: offset), offset)
    }

    private mutating func refuseRedirect(_ code: Int, _ why: String) -> Action {
        state = .done
        return .refuse(DownloadFailure(domain: .url, code: code, reason: why), .http)
    }

    /// A short body is taken, so that the connection can be used again; else it is closed.
    private mutating func follow(_ head: TransportHead, _ next: Hop, _ offset: Int64) -> Action {
        guard let length = head.value(of: "Content-Length").flatMap({ ASCIIText.number($0) }),
            length <= PolicyNumbers.redirectBodyMax
        else {
            state = .asking(offset: offset)
            return .request(next, keeping: offset)
        }
        state = .draining(next: next, offset: offset, left: length)
        return .ignore
    }

    /// As browsers do: 303 means "look there", 301 and 302 make a GET of a POST.
    private mutating func changeMethod(status: Int) {
        guard status == 303 && method != "GET" || (status == 301 || status == 302) && method == "POST" else { return }
        method = "GET"
        sendsBody = false
        headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
    }

    /// What the app sends to its server is not for another one: of its fields only those stay that say what form of
    /// content is understood.
    private mutating func dropPrivateFields() {
        let kept = ["Accept", "Accept-Language", "Range"] + (sendsBody ? ["Content-Type"] : [])
        headers.removeAll { field in !kept.contains { ASCIIText.isEqual($0, field.name) } }
    }
}
