// The part of an app's queue that is held in memory.

/// An app's next entries of one class, best first: higher priority, then the lower place.
///
/// The store holds the whole queue; when the window has run low and is not `isComplete`, it is read again.
struct QueueWindow: Hashable, Sendable {
    private(set) var entries: [QueueEntry] = []
    /// Nothing startable is in the store that is not here.
    private(set) var isComplete: Bool
    private var knowledge: QueueKnowledge

    /// Of an app that has nothing else in the store, or of whom nothing is known yet.
    init(isComplete: Bool) {
        self.isComplete = isComplete
        knowledge = isComplete ? .current : .outdated
    }

    /// Nothing is left of it, here and in the store.
    var isDone: Bool { knowledge == .current && entries.isEmpty && isComplete }
    /// The store has to be asked before anything can be said.
    var mustLoad: Bool { knowledge != .current || entries.isEmpty && !isComplete }

    mutating func beginLoading() { knowledge = .asked }

    /// Adds what the store answered; `isAll` when it had no more. An answer that is out of date counts for nothing.
    mutating func load(_ loaded: [QueueEntry], isAll: Bool, limit: Int) {
        guard knowledge == .asked else { return }
        isComplete = isAll
        for entry in loaded { insert(entry, limit: limit) }
        knowledge = .current
    }

    /// A new or newly startable entry.
    mutating func insert(_ entry: QueueEntry, limit: Int) {
        guard !entries.contains(where: { $0.id == entry.id }) else { return }
        let place = entries.firstIndex { entry.precedes($0) } ?? entries.endIndex
        // Behind its last entry an incomplete window knows nothing: the store may have a better one.
        if place == entries.endIndex, !isComplete, !entries.isEmpty, knowledge == .current { return }
        entries.insert(entry, at: place)
        if entries.count > limit {
            entries.removeLast()
            isComplete = false
        }
    }

    mutating func remove(id: String) { entries.removeAll { $0.id == id } }

    /// Puts an entry before all others of its priority.
    mutating func favour(id: String) {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
        var entry = entries.remove(at: index)
        let first = entries.firstIndex { $0.priority <= entry.priority } ?? entries.endIndex
        if first < entries.endIndex, entries[first].priority == entry.priority {
            entry.place = min(entry.place, entries[first].place - 1)
        }
        entries.insert(entry, at: first)
    }

    /// The store knows better: it has to be asked again.
    mutating func invalidate() {
        entries = []
        isComplete = false
        knowledge = .outdated
    }
}

/// What is known of the store's side.
enum QueueKnowledge: Hashable, Sendable {
    case outdated
    /// The store was asked; what it answers counts unless this is out of date by then.
    case asked
    case current
}
