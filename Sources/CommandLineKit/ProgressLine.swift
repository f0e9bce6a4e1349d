// One live line of progress on a terminal; elsewhere now and then a plain line.

/// How far a piece of work is.
package struct Progress: Hashable, Sendable {
    /// What is being done, in a few words.
    package var phase: String
    /// Of the whole work, 0 to 1.
    package var fraction: Double
    /// Bytes so far and in all; 0 where they are not known.
    package var received: Int64
    package var expected: Int64
    /// A sentence on what is waited for; shown while nothing moves.
    package var note: String

    package init(phase: String, fraction: Double, received: Int64 = 0, expected: Int64 = 0, note: String = "") {
        self.phase = phase
        self.fraction = fraction.isFinite ? min(1, max(0, fraction)) : 0
        self.received = max(0, received)
        self.expected = max(0, expected)
        self.note = note
    }
}

/// Decides what to write for each state of the work. Takes the time and the width, writes nothing itself.
package struct ProgressLine: Sendable {
    package enum Surface: Hashable, Sendable {
        case terminal(width: Int)
        case plain
    }

    /// A bar is drawn again at most this often, a plain line written at most this often; a new phase is shown at once.
    private static let redrawInterval = Duration.milliseconds(100)
    private static let plainInterval = Duration.seconds(1)
    /// The speed shown is the mean over this time.
    private static let speedWindow = Duration.seconds(5)
    private static let barMin = 8
    private static let barMax = 40

    private var shown: Progress?
    private var shownAt = Duration.zero
    private var isDrawn = false
    private var samples: [(time: Duration, received: Int64)] = []
    /// How wide the bar was in this phase: it may shrink to make room for the numbers, but does not flicker.
    private var barWidth = Self.barMax

    package init() {}

    /// What to write now; nothing when it is too early.
    package mutating func show(_ progress: Progress, at now: Duration, on surface: Surface) -> String {
        note(progress, at: now)
        let isNew = shown?.phase != progress.phase
        let interval = surface == .plain ? Self.plainInterval : Self.redrawInterval
        if isNew { barWidth = Self.barMax }
        guard isNew || (shown != progress && now - shownAt >= interval) else { return "" }
        shown = progress
        shownAt = now
        switch surface {
        case .plain:
            return plain(progress, isNew: isNew)
        case .terminal(let width):
            isDrawn = true
            // The last column stays free: some terminals wrap there.
            return "\r" + bar(progress, width: max(1, width - 1)) + Self.eraseRest
        }
    }

    /// What takes the bar away, before anything else is written.
    package mutating func clear() -> String {
        guard isDrawn else { return "" }
        isDrawn = false
        shown = nil
        return "\r" + Self.eraseRest
    }

    private static let eraseRest = "\u{1B}[K"

    // MARK: Lines

    private func plain(_ progress: Progress, isNew: Bool) -> String {
        let phase = TerminalText.printable(progress.phase)
        let note = TerminalText.printable(progress.note)
        let numbers = [Format.percent(progress.fraction), amount(progress), note].filter { !$0.isEmpty }
        return "\(phase): \(numbers.joined(separator: ", "))\n"
    }

    private mutating func bar(_ progress: Progress, width: Int) -> String {
        let phase = TerminalText.printable(progress.phase)
        let percent = Format.percent(progress.fraction)
        let speed = speed(progress)
        let details = [amount(progress), speed.isEmpty ? TerminalText.printable(progress.note) : speed]
            .filter { !$0.isEmpty }
        let padded = String(repeating: " ", count: max(0, 5 - percent.count)) + percent
        // What matters least goes first when there is no room.
        for count in stride(from: details.count, through: 0, by: -1) {
            let tail = ([padded] + details.prefix(count)).joined(separator: "  ")
            let room = width - TerminalText.width(phase) - TerminalText.width(tail) - 5
            guard room >= Self.barMin else { continue }
            barWidth = max(Self.barMin, min(room, barWidth))
            return "\(phase)  \(drawn(progress.fraction, barWidth))  \(tail)"
        }
        return TerminalText.shortened("\(phase) \(percent)", to: width)
    }

    private func drawn(_ fraction: Double, _ width: Int) -> String {
        let inner = width - 1
        let filled = Int(fraction * Double(inner))
        return "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: inner - filled) + "]"
    }

    private func amount(_ progress: Progress) -> String {
        if progress.expected > 0 {
            return "\(Format.bytes(progress.received)) of \(Format.bytes(progress.expected))"
        }
        return progress.received > 0 ? Format.bytes(progress.received) : ""
    }

    private func speed(_ progress: Progress) -> String {
        guard let first = samples.first, let last = samples.last, last.time - first.time >= .milliseconds(500),
            last.received > first.received
        else { return "" }
        let seconds = (last.time - first.time) / .seconds(1)
        let perSecond = Double(last.received - first.received) / seconds
        let text = "\(Format.bytes(Int64(perSecond)))/s"
        guard progress.expected > progress.received, perSecond >= 1 else { return text }
        let left = Double(progress.expected - progress.received) / perSecond
        guard left < 360_000 else { return text }
        return "\(text)  \(Format.clock(.seconds(left))) left"
    }

    private mutating func note(_ progress: Progress, at now: Duration) {
        // Each phase counts other bytes.
        if progress.phase != shown?.phase || progress.received < samples.last?.received ?? 0 { samples = [] }
        samples.append((now, progress.received))
        while let first = samples.first, now - first.time > Self.speedWindow { samples.removeFirst() }
    }
}
