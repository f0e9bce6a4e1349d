// What an app was promised, and what must therefore be there after a power cut.
internal import AssetsOS

/// The memory of an observer whom the power cut does not reach.
///
/// The promises, as docs/design.md has them: a download whose `Schedule` was answered ends, and is told at least once; a
/// callback names a file that is whole and stays, also through a power cut, until it was handled; what was handled is not
/// told again, unless the power was cut before that was recorded, which the journal's row `message-closed` shows; within
/// one session nothing is told twice.
final class Ledger: Sendable {
    /// What the app does in its first callback.
    enum Behaviour: CaseIterable, Sendable {
        /// Moves the file to its place, syncs it, and answers.
        case keeps
        /// Answers: the service deletes the file then.
        case leaves
        /// Moves the file and never answers in this session.
        case hesitates
    }

    enum Move: Sendable { case none, begun, synced }
    /// `taken`: the service has answered it, in its memory. A power cut makes that `sent`, whatever was recorded.
    enum Answer: Sendable { case none, sent, taken }

    struct Entry: Sendable {
        let file: Int
        let behaviour: Behaviour
        /// The call that scheduled it was answered.
        var isTaken = false
        /// Where the first callback said that the file lies.
        var vended: String?
        var move = Move.none
        var answer = Answer.none
        var isToldInSession = false
        /// The journal says that it was handled.
        var isRecorded = false

        var isHandled: Bool { answer == .taken || isRecorded }
        var wasSeen: Bool { vended != nil }
        /// Nobody needs the file any more.
        var isGivenUp: Bool { behaviour == .leaves && answer != .none && move == .none }
    }

    struct Counts: Sendable {
        /// Files that were looked for after a power cut because a callback had named them.
        var checked = 0
        /// Callbacks for what had been seen before, and those of them that had been answered before the power cut.
        var toldAgain = 0
        var answersLost = 0
        var wrong: [String] = []
        var lost: [String] = []
        var doubled: [String] = []
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var counts = Counts()
        /// Where the run is, for messages.
        var place = ""
    }

    private let files: ServedFiles
    private let assets: String
    private let state = Guarded(State())

    init(files: ServedFiles, assets: String) {
        self.files = files
        self.assets = assets
    }

    var counts: Counts { state.withLock { $0.counts } }
    var place: String { state.withLock { $0.place } }
    var ids: [String] { state.withLock { $0.entries.keys.sorted() } }

    func begin(_ place: String) { state.withLock { $0.place = place } }
    func beginSession() {
        state.withLock { state in
            for id in state.entries.keys { state.entries[id]?.isToldInSession = false }
        }
    }
    func forgetAll() { state.withLock { $0.entries = [:] } }
    func path(of id: String) -> String { "\(assets)/\(id)" }

    // MARK: What happens

    /// The service has lost its memory.
    func powerWasCut() {
        state.withLock { state in
            for (id, entry) in state.entries where entry.answer == .taken { state.entries[id]?.answer = .sent }
        }
    }

    func add(_ id: String, _ entry: Entry) { state.withLock { $0.entries[id] = entry } }
    func note(_ id: String, _ change: (inout Entry) -> Void) {
        state.withLock { state in
            guard var entry = state.entries[id] else { return }
            change(&entry)
            state.entries[id] = entry
        }
    }

    /// A callback has begun. nil: it was not to come, which is noted.
    func tell(_ id: String, path: String) -> (entry: Entry, isFirst: Bool)? {
        state.withLock { state in
            guard var entry = state.entries[id] else {
                state.counts.doubled.append("\(state.place): \(id) is told long after its end")
                return nil
            }
            if entry.isHandled { state.counts.doubled.append("\(state.place): \(id) is told after it was handled") }
            if entry.isToldInSession { state.counts.doubled.append("\(state.place): \(id) is told twice in a session") }
            let isFirst = !entry.wasSeen
            if !isFirst { state.counts.toldAgain += 1 }
            if entry.answer == .sent { state.counts.answersLost += 1 }
            entry.isToldInSession = true
            if isFirst { entry.vended = path }
            state.entries[id] = entry
            return (entry, isFirst)
        }
    }

    func failed(_ id: String, _ reason: String) {
        state.withLock { $0.counts.lost.append("\($0.place): \(id) failed: \(reason)") }
    }

    /// The extension is told; nobody may be told of what was handled.
    func extensionTold(_ id: String) {
        state.withLock { state in
            guard let entry = state.entries[id], entry.isHandled else { return }
            state.counts.doubled.append("\(state.place): the extension is told of \(id) after it was handled")
        }
    }

    // MARK: What must be there

    /// Looks at a file in a callback.
    func look(at path: String, _ id: String, _ entry: Entry) throws(SystemCallError) -> Bool {
        switch try files.isRight(path, entry.file) {
        case true?: return true
        case false?: state.withLock { $0.counts.wrong.append("\($0.place): \(id) in its callback: \(entry)") }
        case nil: state.withLock { $0.counts.lost.append("\($0.place): \(id) is not there in its callback: \(entry)") }
        }
        return false
    }

    /// After a power cut, before anybody can mend anything: what a callback has named is there.
    func checkSeen() throws(SystemCallError) {
        let seen = state.withLock { $0.entries.filter { $0.value.wasSeen && !$0.value.isGivenUp } }
        for (id, entry) in seen.sorted(by: { $0.key < $1.key }) {
            // What was not moved yet may since have been taken by the extension.
            let places = entry.move == .synced ? [path(of: id)] : [path(of: id), entry.vended ?? ""]
            try check(id, entry, at: places, "after the power cut")
            state.withLock { $0.counts.checked += 1 }
        }
    }

    /// When the service has nothing left to do: every download has come to its place.
    func checkEnded() throws(SystemCallError) {
        let all = state.withLock { $0.entries }
        for (id, entry) in all.sorted(by: { $0.key < $1.key }) where !entry.isGivenUp {
            // Whose call was not answered may never have been taken.
            guard entry.isTaken || entry.wasSeen else { continue }
            try check(id, entry, at: [path(of: id)], "at its end")
        }
    }

    private func check(_ id: String, _ entry: Entry, at places: [String], _ when: String) throws(SystemCallError) {
        var found: [Bool] = []
        for place in places { if let isRight = try files.isRight(place, entry.file) { found.append(isRight) } }
        if found.contains(true) { return }
        var differences: [String] = []
        for place in places { differences.append("\(place): \(try files.difference(place, entry.file))") }
        state.withLock { state in
            let line = "\(state.place): \(id), \(when): \(differences); \(entry)"
            if found.isEmpty { state.counts.lost.append(line) } else { state.counts.wrong.append(line) }
        }
    }
}
