// A process that pauses transfers, to see what paused ones cost.
internal import AssetsModel
internal import AssetsOS
internal import AssetsTransfer
internal import BenchmarkKit
internal import Glibc

/// The service's transfer engine with more transfers paused at once than the service ever has: there a promotion pauses
/// one, for as long as it takes to write a row.
enum PausedTransfers {
    /// RssAnon of a process, in bytes.
    struct Memory {
        /// Before the transfers began, in a process that has had one.
        var idle: Int
        var running: Int
        var paused: Int
        /// After pauses that last, which give the connections back.
        var waiting: Int

        /// What paused ones cost.
        var ofPaused: Int { paused - idle }
        /// What ones cost that have been paused for long.
        var ofWaiting: Int { waiting - idle }
        /// What pausing them gives back.
        var givenBack: Int { running - paused }
    }

    /// The argument with which this executable becomes that process.
    static let word = "--pause-transfers"
    static let count = 16
    /// Each has received so much when it is paused.
    private static let receivedMin: Int64 = 1 << 20
    private static let limit = Duration.seconds(60)
    private static let look: useconds_t = 10_000
    /// The server goes on sending until what lies between is full; a pause of five seconds gives its connection back.
    static let settling = Duration.seconds(2)
    private static let samples = 50

    /// Runs it; the file at the URL is larger than what can come meanwhile.
    static func measure(_ url: String, authority: String, folder: String) throws -> Memory {
        let output = folder + "/paused.out"
        let arguments = [word, url, authority, folder + "/paused"]
        _ = try Program.run(Program.ours("AssetsBenchmarks"), arguments, log: output)
        let words = try Folder.text(output).split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard words.count == 4 else { throw BenchError("transfers were not paused: \(try Folder.text(output))") }
        return Memory(idle: words[0], running: words[1], paused: words[2], waiting: words[3])
    }

    /// What a process has, over a while.
    static func sample(_ process: Int32) throws -> Int {
        let values = try (0..<samples).map { _ in
            usleep(look)
            return Double(try Machine.anonymousMemory(of: process))
        }
        return Int(Sample(values).median)
    }

    // MARK: That process

    /// Prints the four numbers. The arguments: a URL, a file of certificates, a folder.
    static func answer(_ arguments: [String]) -> Int32 {
        do {
            guard arguments.count == 3 else { throw BenchError("three arguments are needed") }
            let memory = try pause(arguments[0], authority: arguments[1], folder: arguments[2])
            print("\(memory.idle) \(memory.running) \(memory.paused) \(memory.waiting)")
            return 0
        } catch {
            print("\(error)")
            return 1
        }
    }

    private static func pause(_ url: String, authority: String, folder: String) throws -> Memory {
        try Folder.make(folder + "/Transfers")
        let loops = try ["transfer", "write", "background", "hash"].map { try EventLoop.start(name: $0) }
        let loop = loops[0]
        var options = CurlTransport.Options(extraAuthorities: authority)
        options.connectionsMax = count
        let engine = TransferEngine(
            on: loop, disks: [loops[1]], backgroundDisk: loops[2], hashing: loops[3],
            files: try DeviceTree(root: folder),
            transport: CurlTransport.factory(options))
        let seen = Guarded(Seen())
        // One makes what is made once. What all of them would leave with malloc would hide what they cost when they are
        // paused.
        try begin(0..<1, of: url, with: engine, on: loop, seen)
        run(on: loop) { await engine.cancel("0") }
        settling.pass()
        let idle = try sample(getpid())
        let numbers = 1..<(1 + count)
        try begin(numbers, of: url, with: engine, on: loop, seen)
        let running = try sample(getpid())
        run(on: loop) { for number in numbers { await engine.pause("\(number)") } }
        let before = seen.withLock { $0.lengths }
        settling.pass()
        let paused = try sample(getpid())
        let deadline = Deadline(in: limit)
        while seen.withLock({ $0.stopped }) < count {
            guard !deadline.hasPassed else { throw BenchError("a pause that lasts keeps its connection") }
            usleep(look)
        }
        let waiting = try sample(getpid())
        guard seen.withLock({ $0.lengths }) == before else { throw BenchError("a paused transfer goes on") }
        run(on: loop) { await engine.stop() }
        return Memory(idle: idle, running: running, paused: paused, waiting: waiting)
    }

    /// What the transfers told.
    private struct Seen {
        var lengths: [Int: Int64] = [:]
        /// How many ended because their pause lasted.
        var stopped = 0

        mutating func take(_ event: TransferEvent, of number: Int) {
            switch event {
            case .progress(let length, _): lengths[number] = length
            case .ended(.stopped): stopped += 1
            default: break
            }
        }
    }

    /// Returns once each of them has received so much that it runs.
    private static func begin(
        _ numbers: Range<Int>, of url: String, with engine: TransferEngine, on loop: EventLoop,
        _ seen: Guarded<Seen>
    ) throws {
        run(on: loop) {
            for number in numbers {
                let spec = TransferSpec(
                    id: "\(number)", url: "\(url)?\(number)", partialPath: "Transfers/\(number).partial",
                    transferClass: .foreground)
                engine.start(spec) { event in
                    seen.withLock { $0.take(event, of: number) }
                }
            }
        }
        let deadline = Deadline(in: limit)
        while true {
            let lengths = seen.withLock { $0.lengths }
            if numbers.allSatisfy({ lengths[$0, default: 0] >= receivedMin }) { return }
            guard !deadline.hasPassed else { throw BenchError("not all of \(numbers.count) transfers run") }
            usleep(look)
        }
    }

    /// Returns when it is done.
    private static func run(on loop: EventLoop, _ body: @escaping @Sendable () async -> Void) {
        let isDone = Guarded(false)
        Task(executorPreference: loop) {
            await body()
            isDone.withLock { $0 = true }
        }
        while !isDone.withLock({ $0 }) { usleep(look) }
    }
}
