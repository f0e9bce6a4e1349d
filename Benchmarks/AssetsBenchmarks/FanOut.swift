// How soon many clients hear of the same event, and what that costs the service.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// Processes with a delegate, while downloads make progress.
///
/// The time of an event is that from the first callback to the last one. When the service itself knew is not to be seen
/// from outside, but it tells all clients in a row.
struct FanOut {
    /// Results of one run.
    struct Outcome {
        /// Milliseconds from the first client's callback to the last one's, for each event.
        var spreads: [Double]
        /// How often the thread that tells clients was woken, for each event.
        var wakeUps: Double
        /// The same downloads without clients: the service wakes up to hear of progress and to write how far they are.
        var wakeUpsWithoutClients: Double
        /// As `wakeUps`, of all threads of the service, those included that receive what the events tell of.
        var wakeUpsOfAll: Double
    }

    static let clients = 50
    /// Each tells of its progress ten times a second.
    private static let downloads = 4
    private static let window = Duration.seconds(8)
    /// Until the downloads run evenly.
    private static let settling = Duration.seconds(1)
    private static let readyLimit = Duration.seconds(60)
    /// Bytes a second of each download.
    static let rate = 600_000
    /// More than can come in that time.
    private static let fileSize = 64 << 20

    private let device: PrivateDevice
    private let nginx: Nginx
    private let apps: AppCalls

    init(device: PrivateDevice, nginx: Nginx, apps: AppCalls) throws {
        self.device = device
        self.nginx = nginx
        self.apps = apps
        try Folder.writeRandom(Self.fileSize, to: nginx.site + "/slow.bin")
    }

    func measure() throws -> Outcome {
        let connection = try device.connect()
        defer { connection.close() }
        _ = try connection.call(ManagerInterface.Declare.self, .init(app: BenchBundle.identifier))
        for number in 0..<Self.downloads { try start(number, connection) }
        let process = try device.process()
        usleep(useconds_t(Self.settling / .microseconds(1)))
        let alone = try sleeps(of: process).main
        usleep(useconds_t(Self.window / .microseconds(1)))
        let aloneSleeps = try sleeps(of: process).main - alone
        let listeners = try (0..<Self.clients).map { _ in try apps.open(["listen"]) }
        try waitUntilAllHear(listeners)
        let before = try sleeps(of: process)
        let start = MonotonicClock.now
        usleep(useconds_t(Self.window / .microseconds(1)))
        let end = MonotonicClock.now
        let after = try sleeps(of: process)
        var heard: [Event: [Double]] = [:]
        for listener in listeners {
            let exit = listener.program.end(SIGTERM)
            guard exit.isSuccess else { throw BenchError("a client \(exit): \(listener.program.lastWords)") }
            try read(listener.output, into: &heard)
        }
        for number in 0..<Self.downloads {
            _ = try connection.call(ManagerInterface.Cancel.self, .init(uniqueIdentifier: unique(number)))
        }
        return try outcome(
            heard, from: start.microseconds, to: end.microseconds, mainSleeps: after.main - before.main,
            aloneSleeps: aloneSleeps, allSleeps: after.all - before.all)
    }

    /// A download's progress at one moment.
    private struct Event: Hashable {
        var identifier: Substring
        var total: Substring
    }

    private func unique(_ number: Int) -> String { "00000000-0000-0000-0000-00000000000\(number)" }

    private func start(_ number: Int, _ connection: ServiceConnection) throws {
        let download = WireDownload(
            identifier: "slow-\(number)", uniqueIdentifier: unique(number), url: nginx.baseURL + "/slow.bin",
            method: "GET", headers: [], body: "", group: BenchBundle.group, essential: false,
            size: Int64(Self.fileSize), priority: 0, kind: "url", state: 0)
        _ = try connection.call(ManagerInterface.StartForeground.self, .init(download: download))
    }

    private func waitUntilAllHear(_ listeners: [(program: Program, output: String)]) throws {
        let deadline = Deadline(in: Self.readyLimit)
        for listener in listeners {
            while try Folder.size(listener.output) == 0 {
                guard listener.program.isRunning else { throw BenchError("a client has ended") }
                guard !deadline.hasPassed else { throw BenchError("not all clients hear of progress") }
                usleep(10_000)
            }
        }
    }

    /// How often the main thread and all threads went to sleep so far.
    private func sleeps(of process: Int32) throws -> (main: Int, all: Int) {
        let counts = try Machine.threads(of: process).map { try Machine.sleeps(of: process, thread: $0) }
        return (try Machine.sleeps(of: process, thread: process), counts.reduce(0, +))
    }

    /// Adds the times of a client's callbacks, in microseconds.
    private func read(_ output: String, into heard: inout [Event: [Double]]) throws {
        for line in try Folder.text(output).split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 3, let time = Int64(fields[2]) else { continue }
            heard[Event(identifier: fields[0], total: fields[1]), default: []].append(Double(time) / 1000)
        }
    }

    private func outcome(
        _ heard: [Event: [Double]], from start: Double, to end: Double, mainSleeps: Int, aloneSleeps: Int,
        allSleeps: Int
    ) throws -> Outcome {
        var spreads: [Double] = []
        for times in heard.values {
            guard let first = times.min(), let last = times.max(), first >= start, first <= end else { continue }
            // At the end of the window some clients are gone already.
            guard times.count == Self.clients else {
                if last + 1_000_000 > end { continue }
                throw BenchError("an event reached \(times.count) of \(Self.clients) clients")
            }
            spreads.append((last - first) / 1000)
        }
        guard !spreads.isEmpty else { throw BenchError("no event reached all \(Self.clients) clients") }
        let count = Double(spreads.count)
        return Outcome(
            spreads: spreads, wakeUps: Double(mainSleeps) / count,
            wakeUpsWithoutClients: Double(aloneSleeps) / count, wakeUpsOfAll: Double(allSleeps) / count)
    }
}
