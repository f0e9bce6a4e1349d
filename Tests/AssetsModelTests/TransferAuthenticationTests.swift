// One attempt against servers that ask who asks.
import AssetsModel
import Testing

private let file = "https://a.example/packs/file"
private let right = Credential(user: "right", password: "p")
private let wrong = Credential(user: "wrong", password: "p")

private func space(
    _ host: String = "a.example", _ method: AuthenticationMethod = .basic, realm: String = "r", port: Int = 443
) -> ProtectionSpace {
    ProtectionSpace(scheme: .https, host: host, port: port, realm: realm, method: method)
}

private func asks(_ value: String = "Basic realm=\"r\"", _ fields: [HeaderField] = []) -> TransportHead {
    TransportHead(status: 401, headers: [HeaderField(name: "WWW-Authenticate", value: value)] + fields)
}

private func plan(
    _ known: [SpaceCredential] = [], headers: [HeaderField] = [], resume: ResumePoint? = nil
) -> TransferPlan {
    var order = TransferPlan.Order(url: file)
    order.headers = headers
    order.resume = resume
    order.authentication = TransferAuthentication(credentials: known, clientNonce: "c0ffee")
    let length: Int64 = resume?.syncedOffset ?? 0
    return TransferPlan(
        order, partial: .init(length: length, note: resume.map { PartialNote($0) }, storageEpoch: "here"))
}

extension TransferPlan.Action {
    /// The answers to servers in a request.
    fileprivate var sent: [String]? {
        guard case .request(let hop) = self else { return nil }
        return hop.headers.filter { ASCIIText.isEqual($0.name, "Authorization") }.map(\.value)
    }
    fileprivate var url: String? { if case .request(let hop) = self { hop.url } else { nil } }
    fileprivate var challenge: ServerChallenge? { if case .challenge(let challenge) = self { challenge } else { nil } }
}

private let basicRight = AuthorizationField.basic(right)

@Suite("An attempt and servers that ask")
struct TransferAuthenticationTests {
    @Test("Without a credential somebody is asked, and nothing is sent")
    func asked() throws {
        var plan = plan()
        #expect(plan.begin().sent == [])
        let challenge = try #require(plan.head(asks("Digest realm=\"d\", nonce=\"n\", Basic realm=\"r\"")).challenge)
        #expect(challenge.spaces == [space("a.example", .digest, realm: "d"), space()])
        #expect(challenge.url == file && challenge.refused.isEmpty)
        #expect(challenge.offer == "Digest realm=\"d\", nonce=\"n\", Basic realm=\"r\"")
        // The rest of the answer is of no interest.
        #expect(plan.body(10) == .ignore && plan.end(nil) == .ignore)
    }

    @Test("A known credential is tried in the same attempt, and named once the server is content")
    func known() throws {
        var plan = plan([SpaceCredential(space: space(), credential: right)])
        #expect(plan.begin().sent == [])
        #expect(plan.head(asks()).sent == [basicRight])
        #expect(plan.accepted == nil)
        _ = plan.head(TransportHead(status: 200))
        #expect(plan.accepted == SpaceCredential(space: space(), credential: right, folder: "/packs/"))
    }

    @Test("A short answer is taken to its end, so that its connection can be used again")
    func draining() {
        var plan = plan([SpaceCredential(space: space(), credential: right)])
        _ = plan.begin()
        #expect(plan.head(asks("Basic realm=\"r\"", [HeaderField(name: "Content-Length", value: "10")])) == .ignore)
        #expect(plan.body(10) == .ignore)
        #expect(plan.end(nil).sent == [basicRight])
    }

    @Test("A refused credential is named, tried once, and the next known space is tried before anybody is asked")
    func refused() throws {
        let known = [
            SpaceCredential(space: space(), credential: wrong),
            SpaceCredential(space: space("a.example", .digest, realm: "d"), credential: right),
        ]
        var plan = plan(known)
        _ = plan.begin()
        #expect(plan.head(asks()).sent == [AuthorizationField.basic(wrong)])
        let second = try #require(plan.head(asks("Basic realm=\"r\", Digest realm=\"d\", nonce=\"n\"")).sent?.first)
        #expect(second.hasPrefix("Digest username=\"right\""))
        let challenge = try #require(plan.head(asks("Basic realm=\"r\", Digest realm=\"d\", nonce=\"m\"")).challenge)
        #expect(challenge.refused.map(\.credential) == [wrong, right])
    }

    @Test("A nonce that is out of date does not make the credential wrong, but not for ever")
    func stale() throws {
        var plan = plan([SpaceCredential(space: space("a.example", .digest, realm: "d"), credential: right)])
        _ = plan.begin()
        var nonces = ["n0"]
        var action = plan.head(asks("Digest realm=\"d\", nonce=\"n0\", qop=auth"))
        for round in 1...PolicyNumbers.staleNoncesMax {
            #expect(action.sent?.first?.contains("nonce=\"\(nonces.last ?? "")\"") == true)
            #expect(action.sent?.first?.contains("nc=00000001") == true)
            nonces.append("n\(round)")
            action = plan.head(asks("Digest realm=\"d\", nonce=\"n\(round)\", qop=auth, stale=true"))
        }
        #expect(action.sent?.count == 1)
        let end = plan.head(asks("Digest realm=\"d\", nonce=\"last\", qop=auth, stale=true"))
        #expect(end.challenge?.refused.map(\.credential) == [right])
    }

    @Test("Basic is sent at once to where it was accepted before, and nowhere else")
    func anticipated() {
        func first(_ folder: String?, _ space: ProtectionSpace) -> [String]? {
            var plan = plan([SpaceCredential(space: space, credential: right, folder: folder)])
            return plan.begin().sent
        }
        #expect(first("/packs/", space()) == [basicRight])
        #expect(first("/", space()) == [basicRight])
        #expect(first("/other/", space()) == [])
        #expect(first(nil, space()) == [])
        #expect(first("/packs/", space("b.example")) == [])
        #expect(first("/packs/", space(port: 444)) == [])
        #expect(first("/packs/", space("a.example", .digest)) == [])
    }

    @Test("No credential follows a redirect to another server, port or scheme")
    func redirects() throws {
        for target in ["https://b.example/x", "https://a.example:444/x", "https://b.example/packs/file"] {
            var plan = plan([SpaceCredential(space: space(), credential: right, folder: "/")])
            #expect(plan.begin().sent == [basicRight])
            let away = plan.head(
                TransportHead(status: 302, headers: [HeaderField(name: "Location", value: target)]))
            #expect(away.url == target && away.sent == [])
            // The other server asks in the same realm: that is another space.
            let challenge = try #require(plan.head(asks()).challenge)
            #expect(challenge.url == target && challenge.refused.isEmpty)
            #expect(challenge.spaces.first?.isServer(of: try WebAddress(target)) == true)
        }
    }

    @Test("A redirect within the server keeps the credential; one away and back asks anew")
    func redirectsWithin() {
        var plan = plan([SpaceCredential(space: space(), credential: right)])
        _ = plan.begin()
        #expect(plan.head(asks()).sent == [basicRight])
        let within = plan.head(TransportHead(status: 302, headers: [HeaderField(name: "Location", value: "/other")]))
        #expect(within.sent == [basicRight])
        _ = plan.head(
            TransportHead(status: 302, headers: [HeaderField(name: "Location", value: "https://b.example/")]))
        let back = plan.head(TransportHead(status: 302, headers: [HeaderField(name: "Location", value: file)]))
        #expect(back.url == file && back.sent == [])
    }

    @Test("The app's own field is replaced by an answer, not doubled")
    func ownField() {
        var plan = plan(
            [SpaceCredential(space: space(), credential: right)],
            headers: [HeaderField(name: "authorization", value: "Bearer mine")])
        #expect(plan.begin().sent == ["Bearer mine"])
        #expect(plan.head(asks()).sent == [basicRight])
    }

    @Test("Bytes that are there are asked for beyond, also after an answer")
    func resumed() {
        let note = ResumePoint(etag: "\"v\"", lastModified: nil, total: 100, syncedOffset: 40, storageEpoch: "here")
        var plan = plan([SpaceCredential(space: space(), credential: right)], resume: note)
        _ = plan.begin()
        guard case .request(let hop) = plan.head(asks()) else {
            Issue.record("not asked again")
            return
        }
        #expect(hop.headers.contains { $0.name == "Range" && $0.value == "bytes=40-" })
    }

    @Test("A server that wants something else fails the download with its name", arguments: ["Bearer", "Negotiate"])
    func notSupported(scheme: String) {
        var plan = plan()
        _ = plan.begin()
        guard case .refuse(let failure, .challenge) = plan.head(asks(scheme)) else {
            Issue.record("not refused")
            return
        }
        #expect(failure.code == URLErrorCode.userAuthenticationRequired && failure.reason.contains(scheme))
    }
}

@Suite("The challenges of a download")
struct ChallengeLifeTests {
    private func challenge(
        _ spaces: [ProtectionSpace] = [space("a.example", .digest, realm: "d"), space()],
        refused: [SpaceCredential] = []
    ) -> ServerChallenge {
        ServerChallenge(url: file, spaces: spaces, offer: "", refused: refused)
    }

    private func question(_ step: ChallengeLife.Step) -> ChallengeLife.Question? {
        if case .ask(let question) = step { question } else { nil }
    }

    private func failure(_ step: ChallengeLife.Step) -> Int? {
        if case .fail(let failure, .challenge) = step { failure.code } else { nil }
    }

    @Test("A credential is tried, and one that is refused comes back with its count")
    func counts() throws {
        var life = ChallengeLife()
        let memory = CredentialMemory()
        let first = try #require(question(life.met(challenge(), memory)))
        #expect(
            first.space == space("a.example", .digest, realm: "d") && first.previousFailures == 0
                && first.proposed == nil)
        for count in 1...3 {
            #expect(life.answer(.useCredential(wrong, .session), memory) == .tryAgain)
            let tried = life.credentials(with: memory)
            #expect(tried == [SpaceCredential(space: first.space, credential: wrong)])
            let next = try #require(question(life.met(challenge(refused: tried), memory)))
            #expect(next.previousFailures == count && next.proposed == wrong)
            // Nothing is tried that is known to be wrong.
            #expect(life.credentials(with: memory).isEmpty)
        }
    }

    @Test("An app that always answers the same does not go on for ever")
    func endless() {
        var life = ChallengeLife()
        let memory = CredentialMemory()
        _ = life.met(challenge(), memory)
        var asked = 0
        while asked < 100 {
            _ = life.answer(.useCredential(wrong, .session), memory)
            guard question(life.met(challenge(refused: life.credentials(with: memory)), memory)) != nil else { break }
            asked += 1
        }
        #expect(asked == PolicyNumbers.refusedCredentialsMax)
    }

    @Test("Every disposition has its end")
    func dispositions() {
        func after(_ disposition: ChallengeDisposition) -> ChallengeLife.Step {
            var life = ChallengeLife()
            _ = life.met(challenge(), CredentialMemory())
            return life.answer(disposition, CredentialMemory())
        }
        #expect(after(.useCredential(right, .session)) == .tryAgain)
        #expect(failure(after(.useCredential(nil, .session))) == URLErrorCode.userAuthenticationRequired)
        #expect(failure(after(.performDefaultHandling)) == URLErrorCode.userAuthenticationRequired)
        #expect(failure(after(.cancel)) == URLErrorCode.cancelled)
        #expect(question(after(.rejectProtectionSpace))?.space == space())
        let huge = Credential(user: "", password: String(repeating: "p", count: PolicyNumbers.credentialMax + 1))
        #expect(failure(after(.useCredential(huge, .session))) == URLErrorCode.userAuthenticationRequired)
    }

    @Test("Rejected spaces are not asked for again; after the last the download fails")
    func rejections() {
        var life = ChallengeLife()
        var memory = CredentialMemory()
        _ = life.met(challenge(), memory)
        #expect(question(life.answer(.rejectProtectionSpace, memory))?.space == space())
        #expect(failure(life.answer(.rejectProtectionSpace, memory)) == URLErrorCode.userAuthenticationRequired)
        memory.remember(SpaceCredential(space: space(), credential: right))
        #expect(life.credentials(with: memory).isEmpty)
    }

    @Test("What one download was given serves the others, unless it was for that one only")
    func sharing() {
        for (persistence, isShared) in [(ChallengeDisposition.Persistence.session, true), (.download, false)] {
            var life = ChallengeLife()
            _ = life.met(challenge([space()]), CredentialMemory())
            _ = life.answer(.useCredential(right, persistence), CredentialMemory())
            #expect(life.mayShare(SpaceCredential(space: space(), credential: right, folder: "/")) == isShared)
            #expect(!life.mayShare(SpaceCredential(space: space(), credential: wrong, folder: "/")))
        }
    }

    @Test("A credential that became known meanwhile is tried instead of asking")
    func meanwhile() {
        var life = ChallengeLife()
        var memory = CredentialMemory()
        memory.remember(SpaceCredential(space: space(), credential: wrong, folder: "/packs/"))
        let step = life.met(challenge(refused: memory.entries), memory)
        #expect(question(step)?.proposed == nil)
        memory.remember(SpaceCredential(space: space(), credential: right, folder: "/packs/"))
        #expect(life.canTry(memory))
        #expect(life.met(challenge(), memory) == .tryAgain)
        #expect(life.credentials(with: memory).map(\.credential) == [right])
    }

    @Test("Memory keeps one credential for a space, drops a refused one, and is bounded")
    func memory() {
        var memory = CredentialMemory()
        memory.remember(SpaceCredential(space: space(), credential: wrong, folder: "/a/b/"))
        memory.forget(SpaceCredential(space: space(), credential: right))
        #expect(memory.entries.count == 1)
        memory.remember(SpaceCredential(space: space(), credential: right, folder: "/a/b/"))
        memory.remember(SpaceCredential(space: space(), credential: right, folder: "/a/"))
        #expect(memory.entries == [SpaceCredential(space: space(), credential: right, folder: "/a/")])
        memory.remember(SpaceCredential(space: space(), credential: right, folder: "/c/"))
        #expect(memory.entries.first?.folder == "/c/")
        for number in 0..<200 {
            memory.remember(SpaceCredential(space: space(realm: "\(number)"), credential: right))
        }
        #expect(memory.entries.count == PolicyNumbers.rememberedCredentialsMax)
        memory.forget(SpaceCredential(space: space(realm: "199"), credential: right))
        #expect(memory.entry(of: space(realm: "199")) == nil)
    }
}
