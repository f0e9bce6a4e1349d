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
        /// What the manifest says, after that time.
        case slow(Duration)
        /// What the manifest says, after it has had so much memory of its own.
        case uses(Int64)
        /// Its process stays; what it said makes no sense.
        case nonsense
    }

    /// What the callback of a finished or failed download does.
    package enum MessageAnswer: Hashable, Sendable {
        /// Moves the file to `Assets/<identifier>` in its group's container; a failure is only taken note of.
        case moved
        /// Moves it, and dies before anybody learns of it.
        case movedAndDied
        /// Leaves the file where it is.
        case left
        case notImplemented
        case died
        case hangs
        /// Moves the file after that time.
        case slow(Duration)
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
        /// The occasion of a content request.
        package var request: ContentRequest?
        package var app: String
        /// Of the download; empty for a content request or event.
        package var identifier: String
        package var uniqueIdentifier: String
        /// The service's process, counted from 1.
        package var process: Int
        /// The extension's process, counted from 1.
        package var run: Int
        /// What the script said for a message.
        package var answer: MessageAnswer?
        /// Refused credentials that a challenge told of.
        package var previousFailures = 0
        /// Nil while it runs, and for good when the service died meanwhile.
        package var outcome: EntryPointOutcome?
    }

    /// What a process of the extension does beside answering.
    package struct Habits: Hashable, Sendable {
        /// How long it holds a file lock after each answer.
        package var lock: Duration?
        /// It does not exit when its entry points are closed.
        package var ignoresEnd = false
        package init() {}
    }

    private struct State {
        var lane: SimulatedLane?
        var process = 0
        var calls: [Call] = []
        var contentAnswers: [ContentAnswer] = []
        var checkAnswers: [ContentAnswer] = []
        var messageAnswers: [String: [MessageAnswer]] = [:]
        var challengeAnswers: [ChallengeAnswer] = []
        var challengeDefault = ChallengeAnswer.notImplemented
        var latency = Duration.milliseconds(30)
        var habits = Habits()
        var problems: [String] = []
    }

    private let loop: SimulatedLoop
    private let files: MemoryTree
    private let random: SeededRandom
    private let state = Guarded(State())
    /// The processes of the extensions, and what became of them.
    package let processes: ScriptedProcesses

    package init(on loop: SimulatedLoop, files: MemoryTree) {
        self.loop = loop
        self.files = files
        random = SeededRandom(seed: loop.seed, stream: "extension")
        processes = ScriptedProcesses(on: loop)
    }

    /// Calls come from another process of the service from now on.
    func attach(to lane: SimulatedLane) {
        state.withLock { state in
            state.lane = lane
            state.process += 1
        }
        processes.attach(to: lane)
    }

    // MARK: The script

    /// What the next content requests get; those after them get the manifest's downloads.
    package func answerContent(_ answers: [ContentAnswer]) { state.withLock { $0.contentAnswers = answers } }

    /// What the next periodic requests get; those after them get an empty set.
    package func answerChecks(_ answers: [ContentAnswer]) { state.withLock { $0.checkAnswers = answers } }

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

    package var habits: Habits {
        get { state.withLock { $0.habits } }
        set { state.withLock { $0.habits = newValue } }
    }

    /// All calls so far, in their order.
    package var calls: [Call] { state.withLock { $0.calls } }

    /// What an extension would complain of: finished files that are not there, calls while it is stopped.
    package var problems: [String] { state.withLock { $0.problems } + processes.problems }

    // MARK: ExtensionRunner

    package func report(to listener: @escaping @Sendable (String, ExtensionNews) -> Void) {
        processes.report(to: listener)
    }

    package func start(_ target: ExtensionTarget) { processes.start(target) }
    package func stop(app: String) { processes.stop(app) }
    package func resume(app: String) { processes.resume(app) }
    package func tellEnd(app: String) { processes.tellEnd(app) }
    package func close(app: String) { if !habits.ignoresEnd { processes.end(app, "exited with 0") } }
    package func kill(app: String) { processes.end(app, "killed by signal 9") }

    package func call(_ entry: EntryPoint, of app: String) async -> EntryPointOutcome {
        guard let lane = state.withLock({ $0.lane }), let (target, run) = processes.beginCall(app) else {
            return .died(.crash, "there is no process")
        }
        let number = begin(entry, target, run)
        await lane.pause(for: latency)
        var outcome: EntryPointOutcome?
        switch entry {
        case .contentRequest(let request, let manifest, _, _):
            outcome = await answer(request, manifest: manifest, target, lane)
        case .applicationEvent: outcome = .notImplemented
        case .finished(let request, let path): outcome = await answer(request, path: path, number, lane)
        case .failed(let request, _): outcome = await answer(request, path: nil, number, lane)
        case .challenge(_, let question): outcome = answer(question, number)
        }
        let result = await end(outcome, app, run)
        state.withLock { $0.calls[number].outcome = result }
        loop.note("extension \(number) returns \(result.shown)")
        return result
    }

    /// What the service hears: a process that is gone says nothing more.
    private func end(_ outcome: EntryPointOutcome?, _ app: String, _ run: Int) async -> EntryPointOutcome {
        switch outcome {
        case nil: await processes.ended(app, run)
        case .died(.invalid, _): break
        case .died: processes.end(app, "killed by signal 6")
        case .downloads, .handled, .answered, .notImplemented: break
        }
        guard processes.endCall(app, run, lock: habits.lock) else {
            return .died(.crash, "it ended inside the callback")
        }
        return outcome ?? .handled
    }

    private func begin(_ entry: EntryPoint, _ target: ExtensionTarget, _ run: Int) -> Int {
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
                    kind: kind, request: entry.occasion, app: target.app, identifier: request?.identifier ?? "",
                    uniqueIdentifier: request?.uniqueIdentifier ?? "", process: state.process, run: run))
            return state.calls.count - 1
        }
        loop.note("extension \(number) called: \(kind) \(request?.identifier ?? "")")
        return number
    }

    // MARK: Answers

    /// Nil when it hangs.
    private func answer(
        _ request: ContentRequest, manifest: String, _ target: ExtensionTarget, _ lane: SimulatedLane
    ) async -> EntryPointOutcome? {
        let answer = state.withLock { state -> ContentAnswer in
            guard request != .periodic else {
                return state.checkAnswers.isEmpty ? .downloads([]) : state.checkAnswers.removeFirst()
            }
            return state.contentAnswers.isEmpty ? .manifest : state.contentAnswers.removeFirst()
        }
        switch answer {
        case .manifest: return downloads(manifest, target)
        case .slow(let time):
            await lane.pause(for: time)
            return downloads(manifest, target)
        case .uses(let bytes):
            guard processes.use(bytes, target.app) else { return nil }
            return downloads(manifest, target)
        case .nonsense: return .died(.invalid, "it answered nonsense")
        case .downloads(let downloads): return .downloads(downloads)
        case .notImplemented: return .notImplemented
        case .died: return .died(.crash, "as the script says")
        case .hangs: return nil
        }
    }

    private func downloads(_ manifest: String, _ target: ExtensionTarget) -> EntryPointOutcome {
        guard let bytes = try? files.read(relative(manifest), limit: 1 << 20) else {
            return .died(.crash, "the manifest cannot be read")
        }
        return .downloads(ScriptedManifest.parse(bytes, group: target.groups.first?.identifier ?? "", random))
    }

    private func answer(
        _ request: DownloadRequest, path: String?, _ number: Int, _ lane: SimulatedLane
    ) async -> EntryPointOutcome? {
        let answer = state.withLock { state -> MessageAnswer in
            guard state.messageAnswers[request.identifier]?.isEmpty == false else { return .moved }
            return state.messageAnswers[request.identifier]?.removeFirst() ?? .moved
        }
        state.withLock { $0.calls[number].answer = answer }
        switch answer {
        case .moved: return move(request, path)
        case .movedAndDied:
            _ = move(request, path)
            return .died(.crash, "as the script says")
        case .slow(let time):
            await lane.pause(for: time)
            return move(request, path)
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
        // A finished file waits in the container of its group.
        let container = from.split(separator: "/").prefix(3).joined(separator: "/")
        let to = Self.place(of: request.identifier, in: container)
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

    /// Where it moves finished files, in the container of their group.
    package static func place(of identifier: String, in container: String) -> String {
        "\(container)/Assets/\(identifier)"
    }
}

extension EntryPoint {
    fileprivate var occasion: ContentRequest? {
        switch self {
        case .contentRequest(let request, _, _, _), .applicationEvent(let request, _, _): request
        case .finished, .failed, .challenge: nil
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
