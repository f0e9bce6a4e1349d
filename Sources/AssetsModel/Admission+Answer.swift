// The rule of an answer: what an extension returned from a content request.

extension Admission {
    /// Admits the whole set, or refuses it whole and changes nothing.
    ///
    /// The set has no order, so the one that a refusal names is the first by its identifier, on every device. What is said
    /// of the set as such comes first, then what is wrong with one of its downloads, then what they come to.
    ///
    /// `queued`: those identifiers of the set that are in the queue already.
    package mutating func answer(
        _ requests: [DownloadRequest], to content: ContentRequest, queued: Set<String> = []
    ) throws(AssetsError) {
        let requests = requests.sorted { ($0.identifier, $0.uniqueIdentifier) < ($1.identifier, $1.uniqueIdentifier) }
        try checkSet(requests, queued)
        try checkOccasion(requests, content)
        for request in requests { try check(request) }
        guard isRestricted else { return }
        let essential = try sum(of: requests.filter(\.isEssential), essentialRemaining ?? 0, Self.essentialKey)
        let other = try sum(of: requests.filter { !$0.isEssential }, remaining ?? 0, Self.otherKey)
        ledger.add(AllowanceLedger(essential: essential, nonEssential: other))
    }

    private func checkSet(_ requests: [DownloadRequest], _ queued: Set<String>) throws(AssetsError) {
        guard requests.count <= PolicyNumbers.answerDownloadsMax else {
            throw AssetsError(
                .limitReached, "the extension answered \(requests.count) downloads at once",
                remedy: "answer at most \(PolicyNumbers.answerDownloadsMax), and schedule the others later")
        }
        var identifiers: Set<String> = []
        var names: Set<String> = []
        for request in requests {
            guard identifiers.insert(request.identifier).inserted else {
                throw AssetsError(.downloadAlreadyScheduled, "\(request.shownIdentifier): answered twice in one set")
            }
            guard names.insert(request.uniqueIdentifier).inserted else {
                throw AssetsError(
                    .downloadAlreadyScheduled,
                    "\(request.shownIdentifier): has the unique identifier of another one of the set")
            }
            guard !queued.contains(request.identifier) else {
                throw AssetsError(
                    .downloadAlreadyScheduled, "\(request.shownIdentifier): is scheduled already",
                    remedy: "look at currentDownloads before you answer")
            }
        }
    }

    private func checkOccasion(_ requests: [DownloadRequest], _ content: ContentRequest) throws(AssetsError) {
        switch content {
        case .install, .update: return
        case .periodic, .languageChange: break
        }
        guard let essential = requests.first(where: \.isEssential) else { return }
        throw AssetsError(
            .essentialDownloadNotPermitted,
            "\(essential.shownIdentifier): essential in a request that is neither of an install nor of an update",
            remedy: "return removingEssential() of it instead")
    }

    /// Bytes of all of them, which must be left of the allowance.
    private func sum(of requests: [DownloadRequest], _ left: Int64, _ key: String) throws(AssetsError) -> Int64 {
        let sum = requests.reduce(0) { saturatingSum($0, $1.size) }
        guard sum > left else { return sum }
        let what = requests.count == 1 ? requests[0].shownIdentifier : "\(requests.count) downloads of the answer"
        throw AssetsError(
            .wouldExceedAllowance, "\(what): \(sum) bytes, but \(left) bytes are left of \(key)",
            remedy: "raise \(key) in the app's Info.plist")
    }
}

extension AllowanceLedger {
    package mutating func add(_ other: AllowanceLedger) {
        essential = saturatingSum(essential, other.essential)
        nonEssential = saturatingSum(nonEssential, other.nonEssential)
    }

    /// Gives back what was charged for downloads that did not get into the queue.
    package mutating func giveBack(_ other: AllowanceLedger) {
        essential = max(0, essential - other.essential)
        nonEssential = max(0, nonEssential - other.nonEssential)
    }
}

/// How much of an answer has come, page by page: all of it is in memory until it was looked at.
package struct AnswerLength: Hashable, Sendable {
    private var downloads = 0
    private var bytes = 0

    package init() {}

    /// Counts one page as the extension sent it; false when the answer is longer than one may be.
    package mutating func add(downloads count: Int, bytes size: Int) -> Bool {
        downloads += count
        bytes += size
        return downloads <= PolicyNumbers.answerDownloadsMax && bytes <= PolicyNumbers.answerBytesMax
    }

    /// What is said of one that is longer.
    package static let excess =
        "its answer is longer than \(PolicyNumbers.answerDownloadsMax) downloads or \(PolicyNumbers.answerBytesMax) bytes"
}
