// The rule of memory: what counts of an extension's memory, and what happens when it is too much.

/// Memory of a process that nobody else could use instead, in bytes. Files that it maps are not in it: the system can take
/// their pages away and read them again.
package struct MemoryUse: Hashable, Sendable {
    /// Pages of its own: RssAnon.
    package var anonymous: Int64
    /// Pages that it shares with others and that belong to no file: RssShmem.
    package var shared: Int64
    /// Pages of its own that were swapped out: VmSwap.
    package var swapped: Int64

    package init(anonymous: Int64, shared: Int64 = 0, swapped: Int64 = 0) {
        self.anonymous = anonymous
        self.shared = shared
        self.swapped = swapped
    }

    package var counted: Int64 { anonymous + shared + swapped }
}

/// Watches one run of an extension.
package struct MemoryRule: Hashable, Sendable {
    package enum Verdict: Hashable, Sendable {
        case fine
        /// It has half of what it may have, for the first time in this run.
        case warn
        case tooMuch
    }

    package let limit: Int64
    /// The most that was seen.
    package private(set) var peak: Int64 = 0
    private var hasWarned = false

    package init(limit: Int64 = PolicyNumbers.extensionMemoryMax) { self.limit = limit }

    package mutating func observe(_ use: MemoryUse) -> Verdict {
        peak = max(peak, use.counted)
        if use.counted > limit { return .tooMuch }
        guard !hasWarned, use.counted >= limit / 2 else { return .fine }
        hasWarned = true
        return .warn
    }
}
