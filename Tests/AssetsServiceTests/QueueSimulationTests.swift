// The queue of a whole device: turns of apps, time slices, priorities, and no byte twice.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

@Suite("Simulated queue")
struct QueueSimulationTests {
    private static let apps = ["org.example.one", "org.example.two"]
    private static let rate = 20_000

    /// A device with two installed apps.
    private func device(seed: UInt64) throws -> SimulatedDevice {
        let device = SimulatedDevice(seed: seed)
        for app in Self.apps {
            let manifest = "https://cdn.example.com/\(app)"
            device.staging.set("/apps/\(app)", .simulated(app, manifestURL: manifest))
            device.server.set(manifest, ScriptedResource(.bytes(ScriptedManifest.bytes([]))))
        }
        try device.start()
        for app in Self.apps {
            _ = try device.install("/apps/\(app)")
            try device.wait(for: .launchable, of: app)
        }
        try device.settle()
        return device
    }

    /// A UUID for each name.
    private static func unique(_ name: String) -> String {
        let digits = name.utf8.map { String($0, radix: 16, uppercase: true) }.joined().suffix(12)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    private func url(_ name: String, host: String) -> String { "https://\(host).example.com/\(name)" }

    /// Publishes a file that comes at a steady rate, and schedules it.
    @discardableResult
    private func schedule(
        _ name: String, of app: String, length: Int, host: String = "cdn", priority: Int = 0,
        _ transferClass: TransferClass = .background, isAnnounced: Bool = true, ranges: Bool = true,
        on device: SimulatedDevice
    ) throws -> DownloadRecord {
        let url = url(name, host: host)
        var resource = ScriptedResource(
            .generated(length: length, seed: UInt64(length)), bytesPerSecond: Self.rate)
        if !ranges { resource.parts = .none }
        device.server.set(url, resource)
        let request = DownloadRequest(
            identifier: name, uniqueIdentifier: Self.unique(name), url: url, group: "group.\(app)",
            size: isAnnounced ? Int64(length) : 0, priority: priority)
        return try device.call { try await $0.schedule(request, for: app, as: transferClass) }
    }

    /// When the last byte of a file was sent, counted from the first request for anything.
    private func end(_ name: String, host: String = "cdn", on device: SimulatedDevice) throws -> Duration {
        let log = device.server.log(of: url(name, host: host))
        let last = try #require(log.last)
        #expect(last.isWhole)
        return last.time + .seconds(last.sent) / Self.rate
    }

    /// Each file came whole, was moved by the extension, and no byte of it was sent twice.
    private func checkBytes(_ names: [String: Int], host: String = "cdn", _ device: SimulatedDevice) throws {
        for (name, length) in names.sorted(by: { $0.key < $1.key }) {
            let log = device.server.log(of: url(name, host: host))
            #expect(log.reduce(0) { $0 + $1.sent } == length, "\(name): \(log)")
            // Each request goes on where the one before stopped.
            var position = 0
            for exchange in log {
                #expect(exchange.offset == position, "\(name): \(log)")
                position += exchange.sent
            }
            let calls = device.extensions.calls.filter { $0.identifier == name }
            #expect(calls.map(\.kind) == [.finished], "\(name)")
        }
        #expect(try device.query { try $0.downloads(limit: 100) } == [])
        #expect(device.extensions.problems == [])
    }

    @Test(
        "Large downloads do not hold up small ones, of another app or of their own, and no byte comes twice",
        arguments: [0, 1], [true, false])
    func large(other: Int, isAnnounced: Bool) throws {
        for seed in UInt64(1)...3 {
            let device = try device(seed: seed)
            var names: [String: Int] = [:]
            for number in 0..<3 {
                names["large-\(number)"] = 1_000_000 + number
                try schedule(
                    "large-\(number)", of: Self.apps[0], length: 1_000_000 + number, isAnnounced: isAnnounced,
                    on: device)
            }
            try device.loop.advance(by: .seconds(5))
            let start = device.loop.now
            for number in 0..<10 {
                names["small-\(number)"] = 3000 + number
                try schedule("small-\(number)", of: Self.apps[other], length: 3000 + number, on: device)
            }
            try device.settle()
            for number in 0..<10 {
                let waited = try end("small-\(number)", on: device) - start
                #expect(waited < .seconds(12), "small \(number) came after \(waited), seed \(seed)")
            }
            try checkBytes(names, device)
            let slices = try device.journal().filter { $0.reason == .timeSlice }
            #expect(!slices.isEmpty && slices.count <= 3)
            #expect(slices.allSatisfy { $0.event == .downloadPaused && $0.detail.contains("large") })
        }
    }

    @Test("A download that a server would send from the beginning again keeps its place")
    func unresumable() throws {
        let device = try device(seed: 1)
        for number in 0..<3 {
            try schedule("large-\(number)", of: Self.apps[0], length: 500_000, ranges: false, on: device)
        }
        try device.loop.advance(by: .seconds(1))
        try schedule("small", of: Self.apps[1], length: 3000, on: device)
        try device.settle()
        try checkBytes(["large-0": 500_000, "large-1": 500_000, "large-2": 500_000, "small": 3000], device)
        #expect(try device.journal().filter { $0.reason == .timeSlice } == [])
    }

    @Test("Two apps with large downloads share the time, and nothing comes twice", arguments: [1, 2, 3])
    func shares(seed: UInt64) throws {
        let device = try device(seed: seed)
        var names: [String: Int] = [:]
        for number in 0..<8 {
            for (index, app) in Self.apps.enumerated() {
                let name = "\(index)-\(number)"
                names[name] = 600_000
                // The first app comes with all of its own before the other.
                try schedule(name, of: app, length: 600_000, priority: index == 0 ? 10 : 0, on: device)
            }
        }
        let before = device.loop.now
        try device.loop.advance(by: .seconds(100) - (device.loop.now - before))
        let sent = (0..<2).map { index in
            (0..<8).reduce(0) { sum, number in
                sum + device.server.log(of: url("\(index)-\(number)", host: "cdn")).reduce(0) { $0 + $1.sent }
            }
        }
        let half = 3 * 100 * Self.rate / 2
        #expect(abs(sent[0] - half) < half / 5 && abs(sent[1] - half) < half / 5, "\(sent) of \(2 * half)")
        try device.settle()
        try checkBytes(names, device)
    }

    @Test("Priority orders an app's downloads, whatever the order of scheduling", arguments: 1...10)
    func priority(seed: UInt64) throws {
        let device = try device(seed: seed)
        // Three run; the others are started in order.
        for number in 0..<3 { try schedule("first-\(number)", of: Self.apps[0], length: 20_000, on: device) }
        try device.loop.advance(by: .milliseconds(100))
        let priorities = ["low": -10, "default": 0, "high": 10, "highest": 1000, "lowest": -1000]
        for (name, priority) in priorities.sorted(by: { ($0.value &* Int(seed)) % 7 < ($1.value &* Int(seed)) % 7 }) {
            try schedule(name, of: Self.apps[0], length: 20_000, priority: priority, on: device)
        }
        try device.settle()
        let order = device.server.log.map { String($0.url.split(separator: "/").last ?? "") }
        let names = order.filter { priorities[$0] != nil }
        #expect(names == ["highest", "high", "default", "low", "lowest"])
    }

    @Test("Killed at any moment, a device whose downloads take turns fetches nothing twice", arguments: 1...6)
    func killed(seed: UInt64) throws {
        let device = try device(seed: seed)
        for number in 0..<4 { try schedule("large-\(number)", of: Self.apps[0], length: 400_000, on: device) }
        for number in 0..<4 { try schedule("other-\(number)", of: Self.apps[1], length: 400_000, on: device) }
        for step in 0..<4 {
            try device.loop.advance(by: .milliseconds(4_000 + Int64(seed) * 1_700 + Int64(step) * 900))
            device.kill()
            try device.start()
        }
        try device.settle()
        for name in (0..<4).flatMap({ ["large-\($0)", "other-\($0)"] }) {
            let log = device.server.log(of: url(name, host: "cdn"))
            // What was not written yet is a tenth of a second of a transfer; each kill may find it running.
            #expect(log.reduce(0) { $0 + $1.sent } <= 400_000 + 4 * Self.rate / 4 + log.count, "\(name): \(log)")
            #expect(device.extensions.calls.filter { $0.identifier == name }.map(\.kind) == [.finished])
        }
    }

    @Test("A promotion starts at once what waits, what has stopped for others and what is to be tried later")
    func promotion() throws {
        let device = try device(seed: 1)
        try schedule("tried-later", of: Self.apps[1], length: 9000, on: device)
        var busy = ScriptedResource(.generated(length: 9000, seed: 1))
        busy.answers = [.status(503, [HeaderField(name: "Retry-After", value: "200")])]
        device.server.set(url("tried-later", host: "cdn"), busy)
        for number in 0..<3 { try schedule("large-\(number)", of: Self.apps[0], length: 600_000, on: device) }
        try device.loop.advance(by: .milliseconds(100))
        try schedule("waiting", of: Self.apps[0], length: 600_000, on: device)
        try schedule("other", of: Self.apps[1], length: 600_000, on: device)
        try device.loop.advance(by: .seconds(15))
        let stopped = try #require(try device.journal().first { $0.reason == .timeSlice }).download
        for id in [Self.unique("waiting"), stopped, Self.unique("tried-later")] {
            let record = try #require(try device.query { try $0.download(id: id) })
            let requests = device.server.log(of: record.request.url).count
            let app = record.app
            _ = try device.call { try await $0.startForeground(record.request, for: app, connection: 7) }
            try device.loop.advance(by: .milliseconds(10))
            #expect(device.server.log(of: record.request.url).count == requests + 1, "\(record.request.identifier)")
        }
        try device.settle()
        #expect(try device.query { try $0.downloads(limit: 100) } == [])
    }

    @Test("A promotion of what is under way forgets what failed in the background")
    func promotionUnderWay() throws {
        let device = try device(seed: 1)
        let request = try schedule("busy", of: Self.apps[0], length: 9000, on: device).request
        var busy = ScriptedResource(.generated(length: 9000, seed: 1))
        busy.answers = Array(repeating: .status(503), count: 8)
        busy.latency = .seconds(5)
        device.server.set(request.url, busy)
        try device.loop.run(until: { device.server.log(of: request.url).count == 8 }, limit: .seconds(3600))
        _ = try device.call { try await $0.startForeground(request, for: Self.apps[0], connection: 7) }
        try device.loop.run(until: { device.server.log(of: request.url).count == 9 }, limit: .seconds(600))
        let log = device.server.log(of: request.url)
        // 5 s to the answer, and the first pause.
        #expect(log[8].time - log[7].time <= .seconds(8))
        try device.settle()
    }

    @Test("After a slice the history of failures is over where bytes came")
    func sliceEndsHistory() throws {
        let device = try device(seed: 1)
        try schedule("large-0", of: Self.apps[0], length: 900_000, on: device)
        var first = ScriptedResource(.generated(length: 900_000, seed: 900_000), bytesPerSecond: Self.rate)
        first.answers = [.status(503), .content, .status(503)]
        device.server.set(url("large-0", host: "cdn"), first)
        try device.loop.run(until: { device.server.log(of: url("large-0", host: "cdn")).count == 2 })
        for number in 1..<3 { try schedule("large-\(number)", of: Self.apps[0], length: 900_000, on: device) }
        for number in 0..<3 { try schedule("other-\(number)", of: Self.apps[1], length: 900_000, on: device) }
        device.calendar.set(to: device.calendar.now + .seconds(25 * 3600))
        try device.settle()
        #expect(try device.journal().contains { $0.reason == .timeSlice && $0.download == Self.unique("large-0") })
        #expect(try device.journal().filter { $0.event == .downloadFailed } == [])
        #expect(Array(device.server.log(of: url("large-0", host: "cdn")).map(\.status).prefix(3)) == [503, 200, 503])
    }

    // MARK: Connections that come and go

    /// Runs so many jobs, or all there are.
    private func advance(jobs: Int, on device: SimulatedDevice) {
        var done = 0
        try? device.loop.run(
            until: {
                defer { done += 1 }
                return done == jobs
            }, limit: .milliseconds(1))
    }

    private func transferClass(_ name: String, on device: SimulatedDevice) throws -> TransferClass? {
        try device.loop.advance(by: .milliseconds(500))
        return try device.query { try $0.download(id: Self.unique(name)) }?.transferClass
    }

    /// How many jobs lie between two calls: more than either has.
    private static let steps = 0..<70

    @Test(
        "A connection that closes at any moment of its call leaves nothing in the foreground", arguments: [true, false])
    func closingCaller(isQueued: Bool) throws {
        for steps in Self.steps {
            let device = try device(seed: 1)
            let app = Self.apps[0]
            var request = try schedule("large", of: app, length: 600_000, on: device).request
            try device.loop.advance(by: .seconds(1))
            if !isQueued {
                request.uniqueIdentifier = Self.unique("new")
                request.identifier = "new"
            }
            let asked = request
            let isAnswered = Guarded(false)
            device.spawn { service, _ in
                _ = try await service.startForeground(asked, for: app, connection: 7)
                isAnswered.withLock { $0 = true }
                // As the wire does when a call ends whose connection has closed.
                await service.foregroundConnectionEnded(7)
            }
            advance(jobs: steps, on: device)
            if steps == Self.steps.last { #expect(isAnswered.withLock { $0 }, "the sweep ended too early") }
            device.spawn { service, _ in await service.foregroundConnectionEnded(7) }
            let name = isQueued ? "large" : "new"
            #expect(try transferClass(name, on: device) == .background, "closed after \(steps) jobs")
        }
    }

    @Test("Who holds a download at any moment of its demotion has it in the foreground")
    func newHolder() throws {
        for steps in Self.steps {
            let device = try device(seed: 1)
            let app = Self.apps[0]
            let request = try schedule("large", of: app, length: 600_000, .foreground, on: device).request
            _ = try device.call { try await $0.startForeground(request, for: app, connection: 7) }
            try device.loop.advance(by: .seconds(1))
            device.spawn { service, _ in await service.foregroundConnectionEnded(7) }
            advance(jobs: steps, on: device)
            device.spawn { service, _ in
                _ = try await service.startForeground(request, for: app, connection: 8)
            }
            #expect(try transferClass("large", on: device) == .foreground, "held after \(steps) jobs")
            try device.call { await $0.foregroundConnectionEnded(8) }
            #expect(try transferClass("large", on: device) == .background, "held after \(steps) jobs")
        }
    }

    @Test("Two connections that start the same download at once both hold it")
    func twoHolders() throws {
        for steps in Self.steps {
            let device = try device(seed: 1)
            let app = Self.apps[0]
            var request = try schedule("large", of: app, length: 600_000, on: device).request
            request.uniqueIdentifier = Self.unique("new")
            request.identifier = "new"
            let asked = request
            let refused = Guarded(0)
            for connection in [7, 8] {
                device.spawn { service, _ in
                    do { _ = try await service.startForeground(asked, for: app, connection: connection) } catch {
                        refused.withLock { $0 += 1 }
                    }
                }
                advance(jobs: steps, on: device)
            }
            #expect(try transferClass("new", on: device) == .foreground && refused.withLock { $0 } == 0)
            try device.call { await $0.foregroundConnectionEnded(7) }
            #expect(try transferClass("new", on: device) == .foreground, "one of two after \(steps) jobs")
            try device.call { await $0.foregroundConnectionEnded(8) }
            #expect(try transferClass("new", on: device) == .background, "the other after \(steps) jobs")
        }
    }

    @Test("When an app's process ends its downloads go on in turn, and hold up nobody else's", arguments: [1, 2, 3])
    func demotedTogether(seed: UInt64) throws {
        let device = try device(seed: seed)
        let lengths = Dictionary(uniqueKeysWithValues: (0..<12).map { ("large-\($0)", 400_000 + $0) })
        let hosts = ["cdn", "mirror"].enumerated().map { index, host in
            (host, lengths.filter { $0.value % 2 == index })
        }
        for (host, files) in hosts {
            for (name, length) in files.sorted(by: { $0.value < $1.value }) {
                let request = try schedule(name, of: Self.apps[0], length: length, host: host, on: device).request
                _ = try device.call { try await $0.startForeground(request, for: Self.apps[0], connection: 7) }
            }
        }
        func running() throws -> Int {
            try device.call { service in lengths.keys.count { service.progress(of: Self.unique($0)) != nil } }
        }
        try device.loop.advance(by: .seconds(5))
        #expect(try running() == 12)

        try device.call { await $0.foregroundConnectionEnded(7) }
        let start = device.loop.now
        var small: [String: Int] = [:]
        for number in 0..<10 {
            small["small-\(number)"] = 3000 + number
            try schedule("small-\(number)", of: Self.apps[1], length: 3000 + number, on: device)
        }
        try device.loop.advance(by: .seconds(1))
        #expect(try running() == 3)
        let held = try device.call { try await $0.standings(of: Self.apps[1], download: "small-0") }
        #expect(held.map(\.detail) == ["all 3 places for background transfers are taken"])
        let stopped = try device.journal().filter { $0.event == .downloadPaused }
        #expect(stopped.count == 9 && stopped.allSatisfy { $0.reason == .concurrency })
        #expect(stopped.allSatisfy { $0.detail.contains("transfers shared 3 places") })

        try device.settle()
        for name in small.keys.sorted() {
            let waited = try end(name, on: device) - start
            #expect(waited < .seconds(15), "\(name) came after \(waited)")
        }
        for (host, files) in hosts { try checkBytes(files, host: host, device) }
        try checkBytes(small, device)
    }

    @Test("A demotion that the disk does not take is done once it does")
    func lateDemotion() throws {
        let device = try device(seed: 1)
        let app = Self.apps[0]
        let request = try schedule("large", of: app, length: 900_000, on: device).request
        _ = try device.call { try await $0.startForeground(request, for: app, connection: 7) }
        try device.loop.advance(by: .seconds(1))
        device.vfs.setFault(.fails(call: device.vfs.calls + 1))
        device.spawn { service, _ in await service.foregroundConnectionEnded(7) }
        try device.loop.advance(by: .seconds(1))
        device.vfs.setFault(nil)
        #expect(try transferClass("large", on: device) == .foreground)
        try device.loop.advance(by: PolicyNumbers.storagePauseMin)
        #expect(try transferClass("large", on: device) == .background)
    }

    @Test("A demoted download asks a server no sooner than it wants to be asked")
    func politeDemotion() throws {
        let device = try device(seed: 1)
        let app = Self.apps[0]
        try schedule("first", of: app, length: 3000, on: device)
        var busy = ScriptedResource(.generated(length: 9000, seed: 1))
        busy.answers = [.status(503, [HeaderField(name: "Retry-After", value: "60")])]
        device.server.set(url("busy", host: "cdn"), busy)
        let request = DownloadRequest(
            identifier: "busy", uniqueIdentifier: Self.unique("busy"), url: url("busy", host: "cdn"),
            group: "group.\(app)", size: 9000)
        _ = try device.call { try await $0.startForeground(request, for: app, connection: 7) }
        try device.loop.advance(by: .seconds(2))
        try device.call { await $0.foregroundConnectionEnded(7) }
        #expect(try transferClass("busy", on: device) == .background)
        try device.loop.advance(by: .seconds(50))
        #expect(device.server.log(of: request.url).count == 1)
        try device.settle()
        #expect(device.server.log(of: request.url).count == 2)
    }
}
