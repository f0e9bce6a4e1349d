// Calls that an app makes through the public module, each app a process of its own.
internal import AssetsOS
internal import BenchmarkKit

/// Processes of BenchApp that speak for the installed app.
final class AppCalls {
    /// How long processes may take to start, and to warm up.
    static let warmUp = Duration.milliseconds(400)
    /// Beyond its window; a call that began in it may take long.
    private static let endLimit = Duration.seconds(60)

    private let device: PrivateDevice
    private let folder: String
    private var number = 0

    init(device: PrivateDevice, folder: String) {
        self.device = device
        self.folder = folder
    }

    /// Times of a call, in microseconds, that so many processes repeat at once.
    func times(of call: String, for window: Duration, processes: Int = 1) throws -> [Double] {
        let start = MonotonicClock.now + Self.warmUp
        let arguments = [call, nanoseconds(start), nanoseconds(start + window)]
        let running = try (0..<processes).map { _ in try open(arguments) }
        var times: [Double] = []
        for app in running {
            let exit = try app.program.wait(within: Self.warmUp + window + Self.endLimit)
            guard exit.isSuccess else { throw BenchError("BenchApp \(call) \(exit): \(app.program.lastWords)") }
            let lines = try Folder.text(app.output).split(separator: "\n")
            times += lines.compactMap { Int64($0) }.map { Double($0) / 1000 }
        }
        guard !times.isEmpty else { throw BenchError("no call '\(call)' fitted into \(window)") }
        return times
    }

    /// Starts BenchApp; its output is a file.
    func open(_ arguments: [String]) throws -> (program: Program, output: String) {
        number += 1
        let output = "\(folder)/app-\(number).out"
        let environment = Program.environment.merging([
            "BACKGROUNDASSETS_DEVICE": device.root, "BACKGROUNDASSETS_APP": BenchBundle.identifier,
            // As if it had been launched.
            RepairLibrary.loaderVariable: try Program.ours("libFoundationRepair.so"),
        ]) { $1 }
        let program = try Program(Program.ours("BenchApp"), arguments, log: output, environment: environment)
        return (program, output)
    }

    private func nanoseconds(_ time: Duration) -> String { "\(Int64(time / .nanoseconds(1)))" }
}
