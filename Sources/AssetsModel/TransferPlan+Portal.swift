// Pages that come instead of the file: where they are looked for, and what is done about one.

extension TransferPlan {
    /// How far an answer keeps what was promised of the file.
    enum Doubt: Hashable, Sendable {
        case none
        /// It can be a page only if what is known at the end says that it is not the file.
        case untilTheEnd
        /// It is not what was promised: if it is a page, it is not the server's file.
        case brokenPromise
    }

    /// What is not called a page by anybody is in doubt only where no page can be: for a manifest, or where the URL names such
    /// a kind of file. There also a server that names versions is; elsewhere it speaks for itself.
    func doubt(about head: TransportHead, length: Int64) -> Doubt {
        if length > 0, length == order.expectedSize { return .none }
        guard let asked = try? WebAddress(order.url), CaptivePortal.kind(of: asked) != .page, !asksForPart,
            address.map({ CaptivePortal.kind(of: $0) }) != .page
        else { return .none }
        let isFile = order.isManifest || CaptivePortal.kind(of: asked) == .file
        let type = ContentFields.mediaType(head) ?? "text/plain"
        let canBePage = CaptivePortal.saysPage(head) || isFile && type.hasPrefix("text/")
        guard canBePage, isFile || !Validator.isNamed(head) else { return .none }
        if isFile || length > 0 && order.expectedSize > 0 { return .brokenPromise }
        if let resume, Self.label(of: resume, in: order) != nil, partial.length > 0 {
            return length > 0 && length == resume.total ? .untilTheEnd : .brokenPromise
        }
        return order.expectedSize > 0 || order.digest != nil ? .untilTheEnd : .none
    }

    /// True when the first bytes of the body are wanted, by `beginning`: `PolicyNumbers.pageBeginningMax` of them, or all.
    package var mustSeeBeginning: Bool {
        if case .looking = state { true } else { false }
    }

    /// The body begins so; with no bytes it is empty. Only while `mustSeeBeginning`, and before `body`, which brings these
    /// bytes as well, and `end`.
    package mutating func beginning(_ bytes: [UInt8]) -> Action {
        guard case .looking(let start, let doubt, let saysPage) = state else {
            preconditionFailure("the beginning of a body in \(state)")
        }
        if CaptivePortal.isPage(bytes, saysPage: saysPage) {
            if doubt == .brokenPromise { return portal() }
            isPage = true
        }
        return accept(start)
    }

    /// The network is not open yet. What is on the disk stays as it is.
    mutating func portal(_ what: String? = nil) -> Action {
        // What came of the page is none of it.
        hasAdvanced = false
        let page = "a web page came instead of the file"
        return interrupt(
            .unreachable, .portal, URLErrorCode.notConnectedToInternet,
            what ?? "\(page): the network asks to sign in, or the server has no such file")
    }
}
