// The rule of credentials: what a download does with a challenge, and what is remembered for the next one. In memory
// only: neither is ever written.

/// The challenges of one download, from the first 401 until it ends or the service does.
package struct ChallengeLife: Hashable, Sendable {
    /// What somebody is asked.
    package struct Question: Hashable, Sendable {
        package var space: ProtectionSpace
        /// Credentials for this space that the server has refused this download.
        package var previousFailures: Int
        /// The one that was refused last.
        package var proposed: Credential?
        package var url: String
        package var offer: String

        package init(
            space: ProtectionSpace, previousFailures: Int, proposed: Credential?, url: String, offer: String
        ) {
            self.space = space
            self.previousFailures = previousFailures
            self.proposed = proposed
            self.url = url
            self.offer = offer
        }
    }

    package enum Step: Hashable, Sendable {
        case ask(Question)
        /// Another attempt has a credential to try.
        case tryAgain
        case fail(DownloadFailure, Reason)
    }

    private struct Refusals: Hashable, Sendable {
        var count = 0
        var last: Credential?
    }

    private var refusals: [ProtectionSpace: Refusals] = [:]
    private var rejected: Set<ProtectionSpace> = []
    /// What was answered for this download; tried in its attempts.
    private var answered: [ProtectionSpace: SpaceCredential] = [:]
    /// Those of them that others may use once the server has accepted them.
    private var shared: Set<ProtectionSpace> = []
    private var challenge: ServerChallenge?
    private var question: Question?

    package init() {}

    /// What an attempt of this download may try.
    package func credentials(with memory: CredentialMemory) -> [SpaceCredential] {
        let own = answered.values.sorted { $0.space.order < $1.space.order }
        return own
            + memory.entries.filter { answered[$0.space] == nil && !isRefused($0) && !rejected.contains($0.space) }
    }

    /// The attempt ended with a challenge.
    package mutating func met(_ challenge: ServerChallenge, _ memory: CredentialMemory) -> Step {
        for entry in challenge.refused {
            refusals[entry.space, default: Refusals()].count += 1
            refusals[entry.space]?.last = entry.credential
            if answered[entry.space]?.credential == entry.credential { answered[entry.space] = nil }
        }
        self.challenge = challenge
        guard refusals.values.reduce(0, { $0 + $1.count }) <= PolicyNumbers.refusedCredentialsMax else {
            return fail("the server refused \(PolicyNumbers.refusedCredentialsMax) credentials")
        }
        return next(memory)
    }

    /// Somebody said what to do about the question.
    package mutating func answer(_ disposition: ChallengeDisposition, _ memory: CredentialMemory) -> Step {
        guard let question else { return fail("nothing was asked") }
        switch disposition {
        case .useCredential(let credential?, let persistence):
            guard credential.isAcceptable else {
                return fail("the credential is longer than \(PolicyNumbers.credentialMax) bytes")
            }
            answered[question.space] = SpaceCredential(space: question.space, credential: credential)
            if persistence == .session { shared.insert(question.space) } else { shared.remove(question.space) }
            return .tryAgain
        case .useCredential(nil, _), .performDefaultHandling:
            return fail("no credential was given for it")
        case .cancel:
            let why = "the challenge of \(question.space.host) was cancelled"
            return .fail(DownloadFailure(domain: .url, code: URLErrorCode.cancelled, reason: why), .challenge)
        case .rejectProtectionSpace:
            rejected.insert(question.space)
            return next(memory)
        }
    }

    /// Nobody said anything: the download ends as if there were no credential.
    package func unanswered(_ why: String) -> Step { fail(why) }

    /// A credential has become known that this download has not tried.
    package func canTry(_ memory: CredentialMemory) -> Bool {
        guard let challenge else { return false }
        return challenge.spaces.contains { space in
            guard let entry = memory.entry(of: space) else { return false }
            return !rejected.contains(space) && !isRefused(entry)
        }
    }

    /// The server accepted a credential: true when other downloads may have it.
    package func mayShare(_ entry: SpaceCredential) -> Bool {
        shared.contains(entry.space) && answered[entry.space]?.credential == entry.credential
    }

    private mutating func next(_ memory: CredentialMemory) -> Step {
        if canTry(memory) { return .tryAgain }
        guard let challenge, let space = challenge.spaces.first(where: { !rejected.contains($0) }) else {
            return fail("all protection spaces were rejected")
        }
        let before = refusals[space] ?? Refusals()
        let question = Question(
            space: space, previousFailures: before.count, proposed: before.last, url: challenge.url,
            offer: challenge.offer)
        self.question = question
        return .ask(question)
    }

    private func isRefused(_ entry: SpaceCredential) -> Bool { refusals[entry.space]?.last == entry.credential }

    private func fail(_ why: String) -> Step {
        .fail(
            DownloadFailure(
                domain: .url, code: URLErrorCode.userAuthenticationRequired, reason: "the server answered 401: \(why)"),
            .challenge)
    }
}

/// Credentials of one app that servers have accepted, for as long as the service runs.
package struct CredentialMemory: Hashable, Sendable {
    /// Oldest first, one for each space.
    package private(set) var entries: [SpaceCredential] = []

    package init() {}

    package func entry(of space: ProtectionSpace) -> SpaceCredential? { entries.first { $0.space == space } }

    /// `entry` was accepted; the latest place is kept as where it is sent unasked.
    package mutating func remember(_ entry: SpaceCredential) {
        var entry = entry
        if let index = entries.firstIndex(where: { $0.space == entry.space }) {
            let old = entries.remove(at: index)
            if old.credential == entry.credential, let kept = old.folder, let new = entry.folder {
                entry.folder = commonFolder(kept, new)
            }
        }
        entries.append(entry)
        if entries.count > PolicyNumbers.rememberedCredentialsMax { entries.removeFirst() }
    }

    /// A server refused it.
    package mutating func forget(_ entry: SpaceCredential) {
        entries.removeAll { $0.space == entry.space && $0.credential == entry.credential }
    }

    /// Of two places in one space everything between them belongs to it as well, but never more than the shorter one.
    private func commonFolder(_ left: String, _ right: String) -> String {
        let shorter = left.utf8.count < right.utf8.count ? left : right
        return left.hasPrefix(shorter) && right.hasPrefix(shorter) ? shorter : right
    }
}

extension ProtectionSpace {
    /// A fixed order, so that nothing follows that of a dictionary.
    fileprivate var order: String { "\(scheme.rawValue)|\(host)|\(port)|\(method.rawValue)|\(realm)" }
}
