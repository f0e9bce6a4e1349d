// The benches of Background Assets; see docs/benchmarks.md.
internal import BenchmarkKit
internal import CommandLineKit
internal import Glibc

// The other processes of benches.
if CommandLine.arguments.dropFirst().first == PlainPeer.word {
    exit(PlainPeer.answer(Array(CommandLine.arguments.dropFirst(2))))
}
if CommandLine.arguments.dropFirst().first == PausedTransfers.word {
    exit(PausedTransfers.answer(Array(CommandLine.arguments.dropFirst(2))))
}
// Whoever ends us must not leave servers behind.
Interrupts.block()
Interrupts.observe { _ in
    Leftovers.removeAll()
    exit(130)
}
let benches: [any Bench] = [
    LaunchableBench(), ScheduleBench(), CallsBench(), ManyBench(), VerifiedBench(), BigBench(), KillBench(),
    SpliceBench(), PromoteBench(), LoopBench(), PowercutBench(), WakeBench(),
]
let status = BenchRunner(benches).run(Array(CommandLine.arguments.dropFirst()))
Leftovers.removeAll()
exit(status)
