// What the head of a response means for an attempt.

extension TransferPlan {
    /// The head of the response to the last request came.
    package mutating func head(_ head: TransportHead) -> Action {
        guard case .asking(let ask) = state else { return .ignore }
        takesRanges = head.status == 206 || ASCIIText.isEqual(head.value(of: "Accept-Ranges") ?? "", "bytes")
        switch head.status {
        case 200:
            return take(whole: head, ask)
        case 206:
            return take(part: head, ask)
        case 301, 302, 303, 307, 308:
            return redirect(head, ask)
        case 401:
            return authenticate(head, ask)
        case 416 where ask.offset > 0:
            return rangeRefused(head, ask)
        case CaptivePortal.status:
            return portal("the network asks to sign in: it answered \(head.status)")
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
    private mutating func authenticate(_ head: TransportHead, _ ask: Ask) -> Action {
        guard let address else { preconditionFailure("no address in \(state)") }
        switch authentication.unauthorized(head, at: address) {
        case .repeatRequest:
            return follow(head, hop(to: address, ask), ask)
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

    private mutating func redirect(_ head: TransportHead, _ ask: Ask) -> Action {
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
        let isAdmitted = isSecure(target) && order.admits(target.host)
        if !isAdmitted, CaptivePortal.isLogin(target, insteadOf: from, status: head.status) {
            return portal("the network asks to sign in: it redirects to \(target.host)")
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
        return follow(head, hop(to: target, ask), ask)
    }

    private mutating func refuseRedirect(_ code: Int, _ why: String) -> Action {
        state = .done
        return .refuse(DownloadFailure(domain: .url, code: code, reason: why), .http)
    }

    /// A short body is taken, so that the connection can be used again; else it is closed.
    private mutating func follow(_ head: TransportHead, _ next: Hop, _ ask: Ask) -> Action {
        guard let length = head.value(of: "Content-Length").flatMap({ ASCIIText.number($0) }),
            length <= PolicyNumbers.redirectBodyMax
        else {
            state = .asking(ask)
            return .request(next)
        }
        state = .draining(next: next, ask, left: length)
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
