// Answers that bring bytes, or say that there are none left: which of them belong to the file. docs/resume.md lists all
// situations, with their reasons.

extension TransferPlan {
    // MARK: 200

    /// The version from its first byte on, whether or not a part was asked for.
    mutating func take(whole head: TransportHead, _ ask: Ask) -> Action {
        guard let length = ContentFields.length(head) else {
            return interrupt(
                .broken, .http, URLErrorCode.badServerResponse, "the server announces several lengths, or none")
        }
        let doubt = doubt(about: head, length: length)
        if let coding = ContentFields.coding(head), let refusal = refusal(ofCoding: coding, length: length) {
            return doubt == .brokenPromise && CaptivePortal.saysPage(head) ? portal() : refusal
        }
        if ask.offset > 0, let resume {
            let isSame = isSameVersion(head, as: resume, isBare: true)
            let isSameLength = length == 0 || resume.total == 0 || length == resume.total
            // Some servers drop Range where If-Range has a tag, although it is the right one. Asked once without it,
            // they send the part, and say of which version it is.
            if isSame, isSameLength, !ask.isBare, ContentFields.offersParts(head) {
                return self.ask(Ask(offset: ask.offset, isBare: true))
            }
            lost = isSame ? "the server sends no parts of the file" : "the server has another version of the file"
        }
        var start = Start(
            offset: 0, total: length, etag: Validator.strongTag(in: head), lastModified: Validator.strongDate(in: head))
        start.digest = DigestFields.ofWhole(head) ?? DigestFields.ofContent(head) ?? DigestFields.ofObject(head)
        guard doubt != .none else { return accept(start) }
        state = .looking(start, doubt, saysPage: CaptivePortal.saysPage(head))
        return .ignore
    }

    /// The part that the app itself asked for: that part is its file.
    private mutating func take(ownPart head: TransportHead) -> Action {
        var start = Start(offset: 0, total: ContentFields.length(head) ?? 0, etag: nil, lastModified: nil)
        start.digest = DigestFields.ofContent(head)
        return accept(start)
    }

    /// Bytes that were packed on the way are not the file's. Where that is what the file is, the length or the name
    /// says so, or a digest is going to.
    private mutating func refusal(ofCoding coding: String, length: Int64) -> Action? {
        if order.digest != nil || length > 0 && length == order.expectedSize { return nil }
        let addresses = [address, try? WebAddress(order.url)]
        if addresses.contains(where: { ContentFields.isNamed($0?.path ?? "", as: coding) }) { return nil }
        state = .done
        let why = "the server packs the file (\(coding.prefix(40))) although it was asked for the bytes as they are"
        return .refuse(Self.failure(why), .http)
    }

    // MARK: 206

    mutating func take(part head: TransportHead, _ ask: Ask) -> Action {
        guard ask.offset > 0, let resume else {
            if asksForPart { return take(ownPart: head) }
            return interrupt(
                .broken, .http, URLErrorCode.badServerResponse, "the server sent a part that nobody asked for")
        }
        guard let part = wantedPart(head, from: ask.offset, of: resume) else {
            return startOver("the server sent another part than it was asked for")
        }
        guard isSameVersion(head, as: resume, isBare: ask.isBare) else {
            return startOver("the server has another version of the file")
        }
        var start = Start(
            offset: ask.offset, total: part.total, etag: resume.etag, lastModified: resume.lastModified)
        start.end = part.end
        start.digest = DigestFields.ofWhole(head) ?? resume.digest
        if let digest = DigestFields.ofContent(head) {
            start.check = DigestCheck(expected: digest, from: ask.offset, isDeclared: false)
        }
        return accept(start)
    }

    /// Where the part ends and how large the whole is; nil when it is not the beginning of what is missing.
    private func wantedPart(
        _ head: TransportHead, from offset: Int64, of resume: ResumePoint
    ) -> (end: Int64, total: Int64)? {
        guard ContentFields.coding(head) == nil, ContentFields.mediaType(head) != "multipart/byteranges",
            let range = head.value(of: "Content-Range").flatMap(ContentRange.init), let bytes = range.bytes,
            let total = range.total ?? (resume.total > 0 ? resume.total : nil), let length = ContentFields.length(head)
        else { return nil }
        guard bytes.lowerBound == offset, bytes.upperBound < total, resume.total == 0 || total == resume.total,
            length == 0 || length == bytes.upperBound - bytes.lowerBound + 1
        else { return nil }
        return (bytes.upperBound + 1, total)
    }

    /// The server confirms the version. In an answer to If-Range a date may be left out, a tag may not; where nothing
    /// was tied to the version, all has to be there.
    private func isSameVersion(_ head: TransportHead, as resume: ResumePoint, isBare: Bool) -> Bool {
        let digest = DigestFields.ofWhole(head)
        if let digest, let noted = resume.digest, digest.algorithm == noted.algorithm, digest != noted { return false }
        if let tag = resume.etag { return Validator.strongTag(in: head) == tag }
        if let date = resume.lastModified {
            let isTold = head.headers.contains { ASCIIText.isEqual($0.name, "Last-Modified") }
            return isTold ? head.value(of: "Last-Modified") == date : !isBare && resume.total > 0
        }
        if order.digest != nil { return resume.total > 0 }
        return digest != nil && digest == resume.digest
    }

    // MARK: 416

    /// Nothing is left to send, if it is still the same file and nobody ever said that it is longer.
    mutating func rangeRefused(_ head: TransportHead, _ ask: Ask) -> Action {
        guard let resume, resume.total == 0,
            let range = head.value(of: "Content-Range").flatMap(ContentRange.init), range.total == ask.offset,
            isSameVersion(head, as: resume, isBare: true)
        else { return startOver("the server has nothing from the byte on that is missing") }
        var start = Start(
            offset: ask.offset, total: ask.offset, etag: resume.etag, lastModified: resume.lastModified)
        start.digest = resume.digest
        return finish(checked(start), ask.offset)
    }

    /// Asks for all of it. What is on the disk stays until an answer is taken.
    mutating func startOver(_ why: String) -> Action {
        lost = why
        return ask(Ask(offset: 0))
    }

    // MARK: Taking

    /// The bytes are of the file that is wanted, unless their length or their digest says already that they are not.
    mutating func accept(_ start: Start) -> Action {
        if start.total > 0, let refusal = refusal(ofTotal: start.total) { return refusal }
        if let declared = order.digest, let sent = start.digest, sent.algorithm == declared.algorithm, sent != declared
        {
            state = .done
            return .refuse(
                Self.failure(
                    "the server says that its file has the \(sent.shown), the app declared \(declared.hexadecimal)"),
                .digest)
        }
        let start = checked(start)
        self.start = start
        if let address, var entry = authentication.sent {
            entry.folder = address.folder
            accepted = entry
        }
        state = .taking(start, length: start.offset)
        return .take(start)
    }

    /// With what its bytes are compared at the end: the app's word goes before the server's, and the whole before a part.
    func checked(_ start: Start) -> Start {
        var start = start
        if let declared = order.digest {
            start.check = DigestCheck(expected: declared, from: 0, isDeclared: true)
        } else if let sent = start.digest {
            start.check = DigestCheck(expected: sent, from: 0, isDeclared: false)
        }
        return start
    }

    static func failure(_ reason: String) -> DownloadFailure {
        DownloadFailure(domain: .url, code: URLErrorCode.badServerResponse, reason: reason)
    }
}
