// How urgent the work is that an extension is started for.

/// It is fixed when the process starts: an ordinary user cannot raise it again.
package enum ExtensionUrgency: Hashable, Sendable, Comparable {
    /// Nobody waits.
    case background
    /// Somebody looks at a bar, or an app waits.
    case foreground

    /// Of the process, 0 to 19. At 19 what takes 16 ms takes two seconds beside a game.
    package var nice: Int32 { self == .background ? PolicyNumbers.backgroundNice : 0 }

    /// Of its control group, 1 to 10 000. Among groups niceness counts for nothing.
    package var processorWeight: Int {
        self == .background ? PolicyNumbers.backgroundProcessorWeight : PolicyNumbers.processorWeight
    }

    /// Best-effort level of the disk, 0 to 7; nil for everybody's.
    package var diskLevel: Int32? { self == .background ? PolicyNumbers.backgroundDiskLevel : nil }

    /// Whether a process that was started with this urgency may do work of another one.
    package func serves(_ other: ExtensionUrgency) -> Bool { self >= other }
}
