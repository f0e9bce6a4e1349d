// Random numbers of a run, all out of one seed that it prints.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

/// Splitmix64.
struct Chance {
    private var state: UInt64
    let seed: UInt64

    /// The seed of `BACKGROUNDASSETS_SEED`, or any.
    init() throws {
        if let text = ProcessEnvironment.value("BACKGROUNDASSETS_SEED", in: ProcessEnvironment.current), !text.isEmpty {
            guard let given = UInt64(text) else { throw BenchError("BACKGROUNDASSETS_SEED is no number: \(text)") }
            seed = given
        } else {
            seed = SystemRandomSource().next()
        }
        state = seed
    }

    /// Says how the same moments are had again.
    func announce() {
        let line = "BACKGROUNDASSETS_SEED=\(seed) repeats the random moments\n"
        _ = line.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func next(below limit: Int) -> Int { Int(next() % UInt64(limit)) }

    /// Any time up to that.
    mutating func time(upTo most: Duration) -> Duration { most * (Double(next() >> 11) / 0x1p53) }
}

extension Duration {
    /// Lets so much time pass, to the microsecond.
    func pass() { if self > .zero { usleep(useconds_t(microseconds)) } }
}
