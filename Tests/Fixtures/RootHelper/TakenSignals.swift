// Signals that are read instead of ending this process.
internal import AssetsOS
internal import CLinux
internal import Glibc

/// Blocked signals; readable when one has come.
struct TakenSignals: ~Copyable {
    private let source: Descriptor
    var descriptor: Int32 { source.rawValue }

    init(_ signals: [Int32]) throws {
        var set = Self.set(signals)
        sigprocmask(SIG_BLOCK, &set, nil)
        source = Descriptor(owning: try check("signalfd") { signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK)) })
    }

    /// Those that have come since the last call.
    func take() -> [Int32] {
        var taken: [Int32] = []
        var information = signalfd_siginfo()
        while read(source.rawValue, &information, MemoryLayout<signalfd_siginfo>.size) > 0 {
            taken.append(Int32(information.ssi_signo))
        }
        return taken
    }

    static func set(_ signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
