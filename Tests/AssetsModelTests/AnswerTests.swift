import AssetsModel
import Testing

/// An answer is refused for one of these.
private enum Flaw: CaseIterable, Hashable {
    case sameIdentifier
    case sameUnique
    case queued
    case essentialPeriodic
    case badDomain
    case badURL
    case badGroup
    case noIdentifier
    case negativeSize
    case essentialWithoutSize
    case tooMuchEssential
    case tooMuchOther

    var code: AssetsError.Code {
        switch self {
        case .sameIdentifier, .sameUnique, .queued: .downloadAlreadyScheduled
        case .essentialPeriodic: .essentialDownloadNotPermitted
        case .badDomain: .disallowedByDomain
        case .badURL, .badGroup, .noIdentifier, .negativeSize, .essentialWithoutSize: .downloadFailedToStart
        case .tooMuchEssential, .tooMuchOther: .wouldExceedAllowance
        }
    }

    /// Of the set as such, of one download, of the sums: that is the order in which they are told.
    var rank: Int {
        switch self {
        case .sameIdentifier, .sameUnique, .queued: 0
        case .essentialPeriodic: 1
        case .badDomain, .badURL, .badGroup, .noIdentifier, .negativeSize, .essentialWithoutSize: 2
        case .tooMuchEssential: 3
        case .tooMuchOther: 4
        }
    }
}

/// A set of downloads that is in order but for its flaws.
private struct Answer {
    var requests: [DownloadRequest] = []
    var content = ContentRequest.install
    var queued: Set<String> = []

    init(_ flaws: [Flaw] = []) {
        add("a", 20)
        add("b", 30)
        for flaw in flaws { add(flaw) }
    }

    @discardableResult
    private mutating func add(_ identifier: String, _ size: Int64, essential: Bool = false) -> Int {
        let number = String(requests.count)
        requests.append(
            DownloadRequest(
                identifier: identifier,
                uniqueIdentifier: "01234567-89AB-4CDE-8F01-" + String(repeating: "0", count: 12 - number.count)
                    + number,
                url: "https://cdn.example.com/\(identifier)", group: "group.a", isEssential: essential, size: size))
        return requests.count - 1
    }

    private mutating func add(_ flaw: Flaw) {
        switch flaw {
        case .sameIdentifier: add("a", 1)
        case .sameUnique: requests[add("unique", 1)].uniqueIdentifier = requests[0].uniqueIdentifier
        case .queued: queued = ["b"]
        case .essentialPeriodic:
            content = .periodic
            add("e", 10, essential: true)
        case .badDomain: requests[add("domain", 1)].url = "https://elsewhere.test/x"
        case .badURL: requests[add("url", 1)].url = "http://cdn.example.com/x"
        case .badGroup: requests[add("group", 1)].group = "group.b"
        case .noIdentifier: add("", 1)
        case .negativeSize: add("negative", -1)
        case .essentialWithoutSize: add("sizeless", 0, essential: true)
        case .tooMuchEssential: for name in ["e1", "e2", "e3"] { add(name, 20, essential: true) }
        case .tooMuchOther: for name in ["o1", "o2"] { add(name, 40) }
        }
    }
}

/// Allowances of 100 bytes and, for essentials, 50.
private func app(launched: Bool = false, ledger: AllowanceLedger = AllowanceLedger()) -> AppRecord {
    let description = AppDescription(
        bundleIdentifier: "org.example.app", name: "App", version: "1", build: "1", bundleFolder: "App.app",
        executable: "App", manifestURL: "https://cdn.example.com/manifest",
        restrictions: DownloadRestrictions(
            downloadAllowance: 100, essentialDownloadAllowance: 50, allowedDomains: ["cdn.example.com"]),
        maxInstallSize: 100, essentialMaxInstallSize: 50, extensionIdentifier: "org.example.app.extension",
        extensionExecutable: "Extensions/E.appex/E", groups: ["group.a"], sharedGroups: ["group.a"])
    return AppRecord(
        description: description, buildFolder: "build", source: .store, gate: .open, installedAt: .zero,
        launchedAt: launched ? .seconds(1) : nil, ledger: ledger)
}

private func outcome(
    _ answer: Answer, _ admission: inout Admission, order: [DownloadRequest]? = nil
) -> AssetsError? {
    do throws(AssetsError) {
        try admission.answer(order ?? answer.requests, to: answer.content, queued: answer.queued)
        return nil
    } catch { return error }
}

@Suite("The answer of a content request")
struct AnswerTests {
    @Test("A set without a flaw is admitted and charged, of each kind its own allowance")
    func admitted() {
        var answer = Answer()
        answer.requests[0].isEssential = true
        for content in [ContentRequest.install, .update] {
            answer.content = content
            var admission = Admission(app: app(), allowsLoopbackHTTP: false)
            #expect(outcome(answer, &admission) == nil)
            #expect(admission.ledger == AllowanceLedger(essential: 20, nonEssential: 30))
            #expect(admission.remaining == 70 && admission.essentialRemaining == 30)
        }
        for content in [ContentRequest.periodic, .languageChange] {
            answer.content = content
            var admission = Admission(app: app(), allowsLoopbackHTTP: false)
            #expect(outcome(answer, &admission)?.code == .essentialDownloadNotPermitted)
        }
        var empty = Admission(app: app(), allowsLoopbackHTTP: false)
        answer.requests = []
        #expect(outcome(answer, &empty) == nil && empty.ledger == AllowanceLedger())
    }

    @Test("Each flaw refuses the whole set with its code, and nothing is charged", arguments: Flaw.allCases)
    fileprivate func refused(flaw: Flaw) {
        var admission = Admission(app: app(), allowsLoopbackHTTP: false)
        #expect(outcome(Answer([flaw]), &admission)?.code == flaw.code)
        #expect(admission.ledger == AllowanceLedger())
    }

    @Test(
        "Of two flaws the same one is told, in whatever order the set comes",
        arguments: Flaw.allCases, Flaw.allCases)
    fileprivate func combined(one: Flaw, two: Flaw) {
        guard one != two else { return }
        let answer = Answer([one, two])
        var told: Set<AssetsError> = []
        var random = SplitMix(seed: 7)
        for _ in 0..<8 {
            var admission = Admission(app: app(), allowsLoopbackHTTP: false)
            let order = answer.requests.map { ($0, random.next()) }.sorted { $0.1 < $1.1 }.map(\.0)
            let error = outcome(answer, &admission, order: order)
            #expect(admission.ledger == AllowanceLedger())
            if let error { told.insert(error) }
        }
        #expect(told.count == 1)
        let first = one.rank == two.rank ? [one.code, two.code] : [one.rank < two.rank ? one.code : two.code]
        #expect(told.first.map { first.contains($0.code) } == true, "\(told)")
    }

    @Test("What single downloads may have, their sum may not; sums that no number holds are too much")
    func sums() {
        var answer = Answer([.tooMuchEssential])
        var admission = Admission(app: app(), allowsLoopbackHTTP: false)
        let error = outcome(answer, &admission)
        #expect(
            error?.code == .wouldExceedAllowance && error?.reason.contains("60 bytes, but 50 bytes are left") == true)
        answer = Answer()
        for index in answer.requests.indices { answer.requests[index].size = .max }
        #expect(outcome(answer, &admission)?.code == .wouldExceedAllowance)
        // What was taken before is taken.
        var taken = Admission(
            app: app(ledger: AllowanceLedger(essential: 0, nonEssential: 60)), allowsLoopbackHTTP: false)
        #expect(outcome(Answer(), &taken)?.code == .wouldExceedAllowance)
    }

    @Test("After the first launch neither sizes nor hosts are bounded; what cannot be is refused all the same")
    func launched() {
        for flaw in Flaw.allCases {
            var admission = Admission(app: app(launched: true), allowsLoopbackHTTP: false)
            let isRestriction = flaw == .badDomain || flaw.code == .wouldExceedAllowance
            #expect(outcome(Answer([flaw]), &admission)?.code == (isRestriction ? nil : flaw.code), "\(flaw)")
            #expect(admission.ledger == AllowanceLedger())
        }
    }

    @Test("More downloads than anybody can want are refused")
    func tooMany() {
        var answer = Answer()
        answer.requests = Array(repeating: answer.requests[0], count: PolicyNumbers.answerDownloadsMax + 1)
        var admission = Admission(app: app(), allowsLoopbackHTTP: false)
        #expect(outcome(answer, &admission)?.code == .limitReached)
    }

    @Test(
        "An answer is bounded in downloads and in bytes, over all of its pages",
        arguments: [(1000, 100), (1, 1 << 20)])
    func length(downloads: Int, bytes: Int) {
        var length = AnswerLength()
        let pages = min(
            PolicyNumbers.answerDownloadsMax / downloads, PolicyNumbers.answerBytesMax / bytes)
        for _ in 0..<pages {
            let isTaken = length.add(downloads: downloads, bytes: bytes)
            #expect(isTaken)
        }
        let isTaken = length.add(downloads: downloads, bytes: bytes)
        #expect(!isTaken)
    }

    @Test("What did not get into the queue is given back, and no more")
    func givenBack() {
        var ledger = AllowanceLedger(essential: 10, nonEssential: 5)
        ledger.add(AllowanceLedger(essential: .max, nonEssential: 7))
        #expect(ledger == AllowanceLedger(essential: .max, nonEssential: 12))
        ledger.giveBack(AllowanceLedger(essential: .max, nonEssential: 20))
        #expect(ledger == AllowanceLedger())
    }
}
