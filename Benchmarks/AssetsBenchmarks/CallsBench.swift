// What calls of an app cost that touch no disk: lists, exclusive control also behind an extension, events to many.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// Round trips through the public module, each app a process of its own, and at the wire.
struct CallsBench: Bench {
    let name = "calls"
    let summary = "lists of downloads, exclusive control and events for 50 clients, against bare sockets and flock"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try CallsRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What one run needs, and its measurements.
private struct CallsRun {
    private static let rounds = 5
    private static let window = Duration.milliseconds(300)
    /// Lists of so many downloads.
    private static let lengths = [1, 100, 10_000]
    /// Two exchanges with the service.
    private static let controlMax = 40.0
    /// Milliseconds; a person does not notice a quarter of a second.
    private static let behindExtensionMax = 250.0
    private static let fanOutMax = 10.0
    private static let wakeUpsMax = 1.0

    private let name: String
    private let folder: String
    private let device: PrivateDevice
    private let nginx: Nginx
    private let apps: AppCalls

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        device = try PrivateDevice(folder: folder)
        nginx = try Nginx(folder: folder, authority: device.authority, rate: FanOut.rate)
        try Folder.write("", to: nginx.site + "/manifest.txt")
        let bundle = try BenchBundle(in: folder, manifestURL: nginx.baseURL + "/manifest.txt")
        try device.install(bundle.path)
        apps = AppCalls(device: device, folder: folder)
    }

    func finish() {
        device.end(SIGTERM)
        nginx.stop()
        try? Folder.remove(folder)
    }

    func figures(until deadline: Deadline) throws -> [Figure] {
        // In this order, because the lists leave their downloads behind.
        try uncontended(deadline) + contended(deadline) + behindExtension() + fanOut() + lists(deadline)
    }

    // MARK: Exclusive control

    private func uncontended(_ deadline: Deadline) throws -> [Figure] {
        let wire = try WireControl(device: device)
        defer { wire.close() }
        let plain = try PlainPeer(wire.exchanges(), folder: folder)
        defer { plain.end() }
        let lock = folder + "/lock"
        let all = try compare(
            [
                ("control", { try apps.times(of: "control", for: Self.window) }),
                ("control_wire", { try wire.times(for: Self.window) }),
                ("control_plain", { try plain.times(for: Self.window) }),
                ("control_flock", { try KernelLock.times(of: lock, for: Self.window) }),
            ], deadline)
        return [
            figure("control_p50", all[0].p50, "us", target: .atMost(Self.controlMax)),
            figure("control_wire_p50", all[1].p50, "us"),
            figure("control_over_plain", all[0].p50 / all[2].p50, "x", peer: "sockets alone"),
            figure("control_wire_over_plain", all[1].p50 / all[2].p50, "x", peer: "sockets alone"),
            figure("control_p99", all[0].p99, "us"), figure("control_wire_p99", all[1].p99, "us"),
            figure("control_plain_p50", all[2].p50, "us"), figure("control_plain_p99", all[2].p99, "us"),
            figure("control_flock_p50", all[3].p50, "us"),
        ]
    }

    private func contended(_ deadline: Deadline) throws -> [Figure] {
        let all = try compare(
            [("contended", { try apps.times(of: "control", for: Self.window, processes: 2) })], deadline)
        return [
            figure("contended_p50", all[0].p50, "us"), figure("contended_p99", all[0].p99, "us"),
            figure("contended_rate", all[0].count / Self.window.seconds, "holders/s"),
        ]
    }

    private func behindExtension() throws -> [Figure] {
        let scene = ControlBehindExtension(device: device, nginx: nginx, apps: apps, folder: folder)
        let waits = try scene.waits()
        return [
            figure(
                "behind_extension_p99", waits.percentile(99) / 1000, "ms", target: .atMost(Self.behindExtensionMax)),
            figure("behind_extension_p50", waits.median / 1000, "ms"),
            figure("behind_extension_waits", Double(waits.count), "waits"),
        ]
    }

    // MARK: Events

    private func fanOut() throws -> [Figure] {
        let outcome = try FanOut(device: device, nginx: nginx, apps: apps).measure()
        let spreads = Sample(outcome.spreads)
        return [
            figure("fanout_p99", spreads.percentile(99), "ms", target: .atMost(Self.fanOutMax)),
            figure("fanout_p50", spreads.percentile(50), "ms"),
            figure("fanout_events", Double(spreads.count), "events"),
            figure("fanout_wakeups", outcome.wakeUps, "an event", target: .atMost(Self.wakeUpsMax)),
            figure("fanout_wakeups_without_clients", outcome.wakeUpsWithoutClients, "an event"),
            figure("fanout_wakeups_all_threads", outcome.wakeUpsOfAll, "an event"),
        ]
    }

    // MARK: Lists

    private func lists(_ deadline: Deadline) throws -> [Figure] {
        let port = try SilentPort()
        let connection = try WireControl.declared(device)
        defer { connection.close() }
        var figures: [Figure] = []
        var queued = 0
        for length in Self.lengths {
            while queued < length {
                queued += 1
                try schedule(queued, port.port, connection)
            }
            // A long list takes longer than most windows.
            let window = length > 1000 ? Self.window * 2 : Self.window
            let all = try compare(
                [
                    ("current", { try apps.times(of: "current", for: window) }),
                    ("current_wire", { try listTimes(length, connection, for: window) }),
                ], deadline)
            figures += [
                figure("current_\(length)_p50", all[0].p50, "us"), figure("current_\(length)_p99", all[0].p99, "us"),
                figure("current_\(length)_wire_p50", all[1].p50, "us"),
            ]
        }
        return figures
    }

    private func schedule(_ number: Int, _ port: UInt16, _ connection: ServiceConnection) throws {
        let download = WireDownload(
            identifier: "asset-\(number)", uniqueIdentifier: SystemRandomSource().uuid(),
            url: "http://127.0.0.1:\(port)/asset-\(number)", method: "GET", headers: [], body: "",
            group: BenchBundle.group, essential: false, size: 1_000_000, priority: 0, kind: "url", state: 0)
        _ = try connection.call(ManagerInterface.Schedule.self, .init(download: download))
    }

    private func listTimes(_ length: Int, _ connection: ServiceConnection, for window: Duration) throws -> [Double] {
        let end = MonotonicClock.now + window
        var times: [Double] = []
        while true {
            let begin = MonotonicClock.now
            guard begin < end else { return times }
            var count = 0
            try connection.stream(ManagerInterface.CurrentDownloads.self, Nothing()) { page in
                count += page.downloads.count
                return true
            }
            times.append((MonotonicClock.now - begin).microseconds)
            guard count == length else { throw BenchError("\(count) of \(length) downloads were listed") }
        }
    }

    // MARK: Comparing

    /// Times of one contender, in microseconds: the medians of its rounds.
    private struct Times {
        var p50: Double
        var p99: Double
        var count: Double
    }

    /// Measures contenders in turn.
    private func compare(
        _ contenders: [(name: String, times: () throws -> [Double])], _ deadline: Deadline
    ) throws -> [Times] {
        var rounds = Array(repeating: [Sample](), count: contenders.count)
        _ = try Contest.run(
            contenders.indices.map { index in
                Contender(contenders[index].name) {
                    let sample = Sample(try contenders[index].times())
                    rounds[index].append(sample)
                    return sample.median
                }
            }, rounds: Self.rounds, deadline: deadline)
        return rounds.map { samples in
            // The first round warms up.
            let counted = samples.dropFirst()
            return Times(
                p50: Sample(counted.map(\.median)).median, p99: Sample(counted.map { $0.percentile(99) }).median,
                count: Sample(counted.map { Double($0.count) }).median)
        }
    }

    private func figure(
        _ name: String, _ value: Double, _ unit: String, peer: String? = nil, target: Target? = nil
    ) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, peer: peer, target: target)
    }
}
