// An app that wants exclusive control while its extension has it, on a machine that is busy with something else.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// The extension of a background download visits exclusive control again and again, 5 ms of work each time; the app comes
/// back as soon as it was in, so it always waits for one visit.
struct ControlBehindExtension {
    private static let busyProcesses = 4
    private static let window = Duration.seconds(8)
    /// Until the extension runs beside the busy processes.
    private static let startLimit = Duration.seconds(20)
    /// Nobody waits less for 5 ms of work.
    private static let sensibleWait = 3_000.0

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
        let mark = "\(device.root)/Containers/Group/\(BenchBundle.group)/Visits"
        try Folder.write("", to: mark)
        defer { unlink(mark) }
        try wake()
        let sample = Sample(try apps.times(of: "control", for: Self.window))
        guard sample.median >= Self.sensibleWait else {
            throw BenchError("the app waited for \(sample.median) us only: its extension had no control")
        }
        return sample
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
