// How an app's gate, extension, exclusive control and periodic checks stand.

extension Standing {
    // MARK: Gate

    /// - Parameter phase: That of an installation under way; nil where there is none.
    package static func gate(of app: AppRecord?, identifier: String, installing phase: InstallPhase?) -> Standing {
        switch LaunchGate.decide(app: app, identifier: identifier, installing: phase) {
        case .success: Standing(free: .gate, "open")
        case .failure(let error): Standing(.gate, heldBy: .gate, error.reason, release: opening(in: phase))
        }
    }

    private static func opening(in phase: InstallPhase?) -> String {
        let patience = PolicyNumbers.gatePatience.shown
        return switch phase {
        case .archive, .unpacking: "the app is unpacked and its essential assets are there"
        case .manifest: "its extension has been asked and its essential assets are there, or its manifest cannot be had"
        case .asking:
            "its extension has answered and its essential assets are there; at once where it wants none, or fails, or has "
                + "not answered after \(PolicyNumbers.contentRequestLimit.shown)"
        case .essential, .launchable, .failed, .cancelled, nil:
            "all of them have arrived or failed, or when nothing of them has come for \(patience)"
        }
    }

    // MARK: Extension

    /// What is known of an app's extension.
    package struct ExtensionView {
        package var phase: ExtensionLife.Phase
        /// Of the past day.
        package var used: Duration
        package var budget: Duration
        /// Why it may not run now, and for how long that holds at least.
        package var obstacle: (reason: Reason, detail: String, wait: Duration)?

        package init(
            phase: ExtensionLife.Phase, used: Duration, budget: Duration,
            obstacle: (reason: Reason, detail: String, wait: Duration)?
        ) {
            self.phase = phase
            self.used = used
            self.budget = budget
            self.obstacle = obstacle
        }

        fileprivate var left: Duration { max(.zero, budget - used) }
    }

    package static func `extension`(_ view: ExtensionView, at now: Duration) -> Standing {
        let state = "\(view.phase.rawValue), \(view.used.shown) of the \(view.budget.shown) of its day are used"
        guard let obstacle = view.obstacle else { return Standing(free: .extension, state) }
        let (release, latest) = release(of: obstacle.reason, in: obstacle.wait, at: now)
        return Standing(
            .extension, heldBy: obstacle.reason, "\(state): \(obstacle.detail)", release: release, latest: latest)
    }

    /// What lets an extension run again that may not.
    static func release(of obstacle: Reason, in wait: Duration, at now: Duration) -> (String, latest: Duration?) {
        obstacle == .budget
            ? ("some of its runtime is there again", now + wait)
            : ("its app or extension has removed enough of what they hold", nil)
    }

    // MARK: Exclusive control

    /// A process that has exclusive control or waits for it.
    package struct Party: Hashable, Sendable {
        package var isExtension: Bool
        /// Its number; nil where nobody knows.
        package var process: Int32?

        package init(isExtension: Bool, process: Int32? = nil) {
            self.isExtension = isExtension
            self.process = process
        }

        package var name: String {
            if isExtension { return "the extension" }
            return process.map { "process \($0) of the app" } ?? "a process of the app"
        }
    }

    /// - Parameters:
    ///   - holder: Who has it, and for how long; nil where it is free.
    ///   - waiting: Who comes next, the first one first.
    ///   - view: The app's extension; its runtime bounds how long it can have control.
    package static func control(
        holder: (party: Party, since: Duration)?, waiting: [Party], _ view: ExtensionView, at now: Duration
    ) -> Standing {
        guard let holder else { return Standing(free: .control, "free") }
        let name = holder.party.name
        let had = "\(name) has had exclusive control for \(holder.since.shown)"
        guard !waiting.isEmpty else { return Standing(free: .control, "\(had), and nobody waits for it") }
        let long = holder.since >= PolicyNumbers.controlPatience ? "; that is long" : ""
        let detail = "\(had), and \(listed(waiting)) \(waiting.count == 1 ? "waits" : "wait") for it\(long)"
        guard holder.party.isExtension else {
            return Standing(
                .control, heldBy: .control, detail,
                release: "\(name) gives it back or ends, since nobody takes it away from an app")
        }
        return Standing(
            .control, heldBy: .control, detail,
            release: "the extension gives it back or ends, as it does when its runtime of the day is used up",
            latest: now + view.left + PolicyNumbers.terminationGrace)
    }

    /// The first few of them by name.
    private static func listed(_ parties: [Party]) -> String {
        let shown = parties.prefix(partiesShown).map(\.name)
        let others = parties.count - shown.count
        return shown.joined(separator: ", ") + (others > 0 ? " and \(others) more" : "")
    }

    private static let partiesShown = 4

    // MARK: Periodic checks

    /// - Parameters:
    ///   - plan: nil where none is made yet.
    ///   - event: The occasion on which the extension is being asked now.
    package static func check(_ plan: PeriodicPlan?, _ event: ContentEvent?, at now: Duration) -> Standing {
        if let event {
            return Standing(
                free: .check, "the extension is being asked what to download (\(event.request), \(event.origin))")
        }
        guard let plan else {
            return Standing(free: .check, "periodic checks begin when the app can be launched")
        }
        guard !plan.isDue(at: now) else { return Standing(free: .check, "the periodic check is about to begin") }
        return Standing(
            free: .check, "the next periodic check comes in \((plan.due - now).shownRoughly)", latest: plan.due)
    }
}

extension Duration {
    /// "14 d", "6 h", "12 min", or shorter times as `shown`: for plans, whose seconds nobody wants to read.
    package var shownRoughly: String {
        let seconds = components.seconds
        return switch seconds {
        case (2 * 86_400)...: "\(seconds / 86_400) d"
        case 7200...: "\(seconds / 3600) h"
        case 120...: "\(seconds / 60) min"
        default: shown
        }
    }
}
