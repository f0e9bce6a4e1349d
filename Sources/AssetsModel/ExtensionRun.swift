// What is kept of one run of an extension, for its developer.

/// One process of an app's extension, from its launch to its end.
package struct ExtensionRun: Hashable, Sendable {
    /// A UUID.
    package var id: String
    package var app: String
    /// Calendar clock.
    package var launchedAt: Duration
    /// Nil while it runs, and where the service did not live to see its end.
    package var endedAt: Duration?
    /// Entry points that were called.
    package var calls: Int
    /// What counted against the runtime of the day.
    package var runtime: Duration
    /// The most memory of its own that was seen, in bytes.
    package var memoryPeak: Int64
    package var warnings: Set<Warning>
    /// Why it ended; `none` where it was no longer needed.
    package var reason: Reason
    /// How it ended, for people.
    package var detail: String

    /// It came close to a limit.
    package enum Warning: String, Hashable, Sendable, CaseIterable, Comparable {
        /// Half of the memory that it may have.
        case memory
        /// The day's runtime is half used up.
        case runtime
        /// Its containers are larger than its app declares.
        case size

        package static func < (left: Warning, right: Warning) -> Bool { left.rawValue < right.rawValue }
    }

    package init(
        id: String, app: String, launchedAt: Duration, endedAt: Duration? = nil, calls: Int = 0,
        runtime: Duration = .zero, memoryPeak: Int64 = 0, warnings: Set<Warning> = [], reason: Reason = .none,
        detail: String = ""
    ) {
        self.id = id
        self.app = app
        self.launchedAt = launchedAt
        self.endedAt = endedAt
        self.calls = calls
        self.runtime = runtime
        self.memoryPeak = memoryPeak
        self.warnings = warnings
        self.reason = reason
        self.detail = detail
    }
}
