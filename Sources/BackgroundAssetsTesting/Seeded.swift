// Chance and dates of a simulation, and the hash that tells two histories apart.
internal import AssetsOS

/// A sequence of numbers from a seed (SplitMix64). Streams of different names do not disturb each other.
package struct SeededSequence: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    package init(seed: UInt64, stream: String) {
        var hash = TraceHash()
        hash.add(stream)
        hash.add(seed)
        state = hash.value
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// A number from 0 up to, not including, `count`.
    package mutating func next(below count: Int) -> Int { Int(next() % UInt64(count)) }
    package mutating func coin() -> Bool { next() & 1 == 1 }
}

/// Identifiers and jitter out of a seed.
package final class SeededRandom: RandomSource {
    private let sequence: Guarded<SeededSequence>

    package init(seed: UInt64, stream: String = "random") {
        sequence = Guarded(SeededSequence(seed: seed, stream: stream))
    }

    package func next() -> UInt64 { sequence.withLock { $0.next() } }
}

/// The date in a simulation: it goes with the process clock until somebody sets it.
package final class SimulatedCalendar: CalendarClock {
    private let loop: SimulatedLoop
    private let offset: Guarded<Duration>

    /// - Parameter date: Time since 1970 at the beginning; 2023-11-14 22:13:20 UTC where nothing is said.
    package init(on loop: SimulatedLoop, date: Duration = .seconds(1_700_000_000)) {
        self.loop = loop
        offset = Guarded(date - loop.now)
    }

    package var now: Duration { loop.now + offset.withLock { $0 } }

    /// Sets the date, forwards or back, as people and time servers do.
    package func set(to date: Duration) {
        let now = loop.now
        offset.withLock { $0 = date - now }
    }
}

/// FNV-1a, 64 bits.
package struct TraceHash: Hashable, Sendable {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }

    package mutating func add(_ number: UInt64) {
        for shift in stride(from: 0, to: 64, by: 8) { add(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    /// A text and its end.
    package mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(UInt8(0xFF))
    }
}
