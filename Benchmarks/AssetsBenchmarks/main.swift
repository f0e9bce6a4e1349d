// The benches of Background Assets; see docs/benchmarks.md.
internal import BenchmarkKit
internal import CommandLineKit
internal import Glibc

// Whoever ends us must not leave servers behind.
Interrupts.block()
Interrupts.observe { _ in
    Leftovers.removeAll()
    exit(130)
}
let status = BenchRunner([LaunchableBench(), ScheduleBench()]).run(Array(CommandLine.arguments.dropFirst()))
Leftovers.removeAll()
exit(status)
