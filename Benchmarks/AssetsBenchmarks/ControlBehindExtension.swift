// An app that wants exclusive control while its extension has it, on a machine that is busy with something else.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// The extension of a background download visits exclusive control again and again, 5 ms of work each time; the app comes
/// back as soon as it was in, often several times before the extension, which has less of the processors, comes again. Only
/// the times at which it had to wait are counted.
struct ControlBehindExtension {
    private static let busyProcesses = 4
    private static let window = Duration.seconds(8)
    /// Until the extension runs beside the busy processes.
    private static let startLimit = Duration.seconds(20)
    /// Microseconds; who waits for most of 5 ms of work waits longer.
    private static let waitMin = 3_000.0
    /// Fewer of them say nothing of the hundredth.
    private static let waitsMin = 100

    let device: PrivateDevice
    let nginx: Nginx
    let apps: AppCalls
    let folder: String

    /// Waits of the app, in microseconds.
    func waits() throws -> Sample {
        let shell = try Program.find("sh")
        let busy = try (0..<Self.busyProcesses).map {
            try Program(shell, ["-c", "while :; do :; done"], log: "\(folder)/busy-\($0).log")
        }
        defer { for program in busy { _ = program.end(SIGKILL) } }
        let mark = try device.container(of: BenchBundle.group) + "/Visits"
        try Folder.write("", to: mark)
        defer { unlink(mark) }
        try wake()
        let waits = try apps.times(of: "control", for: Self.window).filter { $0 >= Self.waitMin }
        guard waits.count >= Self.waitsMin else {
            throw BenchError("the app waited for its extension \(waits.count) times only")
        }
        return Sample(waits)
    }

    /// Has a download finish in the background, and returns when the extension is told of it.
    private func wake() throws {
        try Folder.write("x", to: nginx.site + "/visits")
        let last = try device.journal(after: 0).last?.number ?? 0
        let connection = try WireControl.declared(device)
        defer { connection.close() }
        let download = WireDownload(
            identifier: "visits", uniqueIdentifier: SystemRandomSource().uuid(), url: nginx.baseURL + "/visits",
            method: "GET", headers: [], body: "", group: BenchBundle.group, essential: false, size: 1, priority: 0,
            kind: "url", state: 0)
        _ = try connection.call(ManagerInterface.Schedule.self, .init(download: download))
        let deadline = Deadline(in: Self.startLimit)
        while try !device.journal(after: last).contains(where: { $0.event == "extension-called" }) {
            guard !deadline.hasPassed else { throw BenchError("the extension was not woken") }
            usleep(20_000)
        }
    }
}
