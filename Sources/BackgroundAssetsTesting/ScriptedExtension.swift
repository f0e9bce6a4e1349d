// The extensions of a simulation: answers as values, and a record of every call.
package import AssetsModel
internal import AssetsOS
package import AssetsService

/// Answers entry points as the script says, and does to finished files what an extension would do.
///
/// It outlives the service's processes as the script does, but a call that runs while the service is killed never
/// returns: the service's extensions die with it.
package final class ScriptedExtension: ExtensionRunner {
    /// What a content request gets.
    package enum ContentAnswer: Hashable, Sendable {
        /// What the manifest says: see `ScriptedManifest`.
        case manifest
        case downloads([DownloadRequest])
        case notImplemented
        case died
        /// Nothing until the service loses its patience.
        case hangs
    }

    /// What the callback of a finished or failed download does.
    package enum MessageAnswer: Hashable, Sendable {
        /// Moves the file to `Assets/<identifier>` in its group's container; a failure is only taken note of.
        case moved
        /// Leaves the file where it is.
        case left
        case notImplemented
        case died
        case hangs
    }

    /// What a challenge gets.
    package enum ChallengeAnswer: Hashable, Sendable {
        case disposition(ChallengeDisposition)
        case notImplemented
        case died
        case hangs
    }

    /// One call of an entry point.
    package struct Call: Hashable, Sendable {
        package enum Kind: Hashable, Sendable { case content, event, finished, failed, challenge }
        package var kind: Kind
        package var app: String
        /// Of the download; empty for a content request or event.
        package var identifier: String
        package var uniqueIdentifier: String
        /// The service's process, counted from 1.
        package var process: Int
        /// What the script said for a message.
        package var answer: MessageAnswer?
        /// Refused credentials that a challenge told of.
        package var previousFailures = 0
        /// Nil while it runs, and for good when the service died meanwhile.
        package var outcome: EntryPointOutcome?
    }

    private struct State {
        var lane: SimulatedLane?
        var process = 0
        var calls: [Call] = []
        var contentAnswers: [ContentAnswer] = []
        var messageAnswers: [String: [MessageAnswer]] = [:]
        var challengeAnswers: [ChallengeAnswer] = []
        var challengeDefault = ChallengeAnswer.notImplemented
        var latency = Duration.milliseconds(30)
        var problems: [String] = []
    }

    private let loop: SimulatedLoop
    private let files: MemoryTree
    private let random: SeededRandom
    private let state = Guarded(State())

    package init(on loop: SimulatedLoop, files: MemoryTree) {
        self.loop = loop
        self.files = files
        random = SeededRandom(seed: loop.seed, stream: "extension")
    }

    /// Calls come from another process of the service from now on.
    func attach(to lane: SimulatedLane) {
        state.withLock { state in
            state.lane = lane
            state.process += 1
        }
    }

    // MARK: The script

    /// What the next content requests get; those after them get the manifest's downloads.
    package func answerContent(_ answers: [ContentAnswer]) { state.withLock { $0.contentAnswers = answers } }

    /// What the next messages of a download get; those after them move the file.
    package func answerMessages(of identifier: String, _ answers: [MessageAnswer]) {
        state.withLock { $0.messageAnswers[identifier] = answers }
    }

    /// What the next challenges get, and then all others.
    package func answerChallenges(_ answers: [ChallengeAnswer] = [], then others: ChallengeAnswer) {
        state.withLock { state in
            state.challengeAnswers = answers
            state.challengeDefault = others
        }
    }

    /// From a call to its answer.
    package var latency: Duration {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = newValue } }
    }

    /// All calls so far, in their order.
    package var calls: [Call] { state.withLock { $0.calls } }

    /// What an extension would complain of: finished files that are not there.
    package var problems: [String] { state.withLock { $0.problems } }

    // MARK: ExtensionRunner

    package func call(_ entry: EntryPoint, on target: ExtensionTarget, limit: Duration?) async -> EntryPointOutcome {
        guard let lane = state.withLock({ $0.lane }) else { return .died(.crash, "there is no service") }
        let number = begin(entry, target)
        await lane.pause(for: latency)
        var outcome: EntryPointOutcome?
        switch entry {
        case .contentRequest(_, let manifest, _, _): outcome = answer(manifest: manifest, target)
        case .applicationEvent: outcome = .notImplemented
        case .finished(let request, let path): outcome = answer(request, path: path, number)
        case .failed(let request, _): outcome = answer(request, path: nil, number)
        case .challenge(_, let question): outcome = answer(question, number)
        }
        if outcome == nil {
            await lane.pause(for: limit ?? .seconds(3600))
            outcome = .died(.timeout, "it did not return")
        }
        let result = outcome ?? .handled
        state.withLock { $0.calls[number].outcome = result }
        loop.note("extension \(number) returns \(result.shown)")
        return result
    }

    package func end(app: String) async { loop.note("extension of \(app) ends") }

    private func begin(_ entry: EntryPoint, _ target: ExtensionTarget) -> Int {
        let (kind, request): (Call.Kind, DownloadRequest?) =
            switch entry {
            case .contentRequest: (.content, nil)
            case .applicationEvent: (.event, nil)
            case .finished(let request, _): (.finished, request)
            case .failed(let request, _): (.failed, request)
            case .challenge(let request, _): (.challenge, request)
            }
        let number = state.withLock { state in
            state.calls.append(
                Call(
                    kind: kind, app: target.app, identifier: request?.identifier ?? "",
                    uniqueIdentifier: request?.uniqueIdentifier ?? "", process: state.process))
            return state.calls.count - 1
        }
        loop.note("extension \(number) called: \(kind) \(request?.identifier ?? "")")
        return number
    }

    // MARK: Answers

    /// Nil when it hangs.
    private func answer(manifest: String, _ target: ExtensionTarget) -> EntryPointOutcome? {
        let answer = state.withLock { $0.contentAnswers.isEmpty ? .manifest : $0.contentAnswers.removeFirst() }
        switch answer {
        case .manifest:
            guard let bytes = try? files.read(relative(manifest), limit: 1 << 20) else {
                return .died(.crash, "the manifest cannot be read")
            }
            return .downloads(ScriptedManifest.parse(bytes, group: target.groups.first ?? "", random))
        case .downloads(let downloads): return .downloads(downloads)
        case .notImplemented: return .notImplemented
        case .died: return .died(.crash, "as the script says")
        case .hangs: return nil
        }
    }

    private func answer(_ request: DownloadRequest, path: String?, _ number: Int) -> EntryPointOutcome? {
        let answer = state.withLock { state -> MessageAnswer in
            guard state.messageAnswers[request.identifier]?.isEmpty == false else { return .moved }
            return state.messageAnswers[request.identifier]?.removeFirst() ?? .moved
        }
        state.withLock { $0.calls[number].answer = answer }
        switch answer {
        case .moved: return move(request, path)
        case .left: return .handled
        case .notImplemented: return .notImplemented
        case .died: return .died(.crash, "as the script says")
        case .hangs: return nil
        }
    }

    private func answer(_ question: ChallengeLife.Question, _ number: Int) -> EntryPointOutcome? {
        let answer = state.withLock { state -> ChallengeAnswer in
            state.calls[number].previousFailures = question.previousFailures
            return state.challengeAnswers.isEmpty ? state.challengeDefault : state.challengeAnswers.removeFirst()
        }
        switch answer {
        case .disposition(let disposition): return .answered(disposition)
        case .notImplemented: return .notImplemented
        case .died: return .died(.crash, "as the script says")
        case .hangs: return nil
        }
    }

    private func move(_ request: DownloadRequest, _ path: String?) -> EntryPointOutcome {
        guard let path else { return .handled }
        let from = relative(path)
        let to = Self.place(of: request.identifier, group: request.group)
        do throws(SystemCallError) {
            guard try files.status(from) != nil else {
                // A killed service tells again of what it does not know to be handled.
                if try files.status(to) == nil {
                    state.withLock { $0.problems.append("\(request.identifier) is neither at \(from) nor moved") }
                }
                return .handled
            }
            // The folder is its own business; that the move lasts is the service's.
            try files.makeDurableDirectory(to.parentFolder)
            try files.rename(from, to: to, exclusively: false)
            return .handled
        } catch { return .died(.crash, "\(error)") }
    }

    private func relative(_ path: String) -> String { String(path.dropFirst(files.root.utf8.count + 1)) }

    /// Where it moves finished files.
    package static func place(of identifier: String, group: String) -> String {
        "Containers/Group/\(group)/Assets/\(identifier)"
    }
}

/// A manifest of simulated apps: one line for each download, "identifier url size essential|later priority".
package enum ScriptedManifest {
    /// One line.
    package struct Entry: Hashable, Sendable {
        package var identifier: String
        package var url: String
        package var size: Int
        package var isEssential: Bool
        package var priority: Int

        package init(_ identifier: String, _ url: String, size: Int, isEssential: Bool, priority: Int = 0) {
            self.identifier = identifier
            self.url = url
            self.size = size
            self.isEssential = isEssential
            self.priority = priority
        }
    }

    package static func bytes(_ entries: [Entry]) -> [UInt8] {
        let lines = entries.map {
            "\($0.identifier) \($0.url) \($0.size) \($0.isEssential ? "essential" : "later") \($0.priority)\n"
        }
        return Array(lines.joined().utf8)
    }

    static func parse(_ bytes: [UInt8], group: String, _ random: SeededRandom) -> [DownloadRequest] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard words.count == 5, let size = Int64(words[2]), let priority = Int(words[4]) else { return nil }
            return DownloadRequest(
                identifier: words[0], uniqueIdentifier: random.uuid(), url: words[1], group: group,
                isEssential: words[3] == "essential", size: size, priority: priority)
        }
    }
}

extension EntryPointOutcome {
    /// One word for the trace.
    fileprivate var shown: String {
        switch self {
        case .downloads(let downloads): "\(downloads.count) downloads"
        case .handled: "handled"
        case .answered(let disposition): disposition.shown
        case .notImplemented: "not implemented"
        case .died(let reason, _): "died: \(reason)"
        }
    }
}

extension String {
    /// The path without its last part.
    var parentFolder: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return String(self[..<slash])
    }
}
