// Attempts of downloads: one request at a time into one partial file each. Whether there is another attempt after an
// interrupted one is decided above.
package import AssetsModel
package import AssetsOS

/// Runs attempts on one loop and writes and syncs their files on others.
package actor TransferEngine {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private nonisolated let loop: any LoopExecutor
    private nonisolated let disks: [any LoopExecutor]
    private nonisolated let backgroundDisk: any LoopExecutor
    private nonisolated let hashing: any LoopExecutor
    private nonisolated let files: any FileTree
    private let transport: any Transport
    private var runs: [UInt64: TransferRun] = [:]
    /// The run of each download.
    private var numbers: [String: UInt64] = [:]
    /// Who waits for the end of a cancelled run.
    private var leaving: [UInt64: [CheckedContinuation<Void, Never>]] = [:]
    private var lastNumber: UInt64 = 0
    /// Shared by all background transfers.
    private var rate = RateLimit()
    private var isStopped = false

    /// `disks` is where writes and syncs block, each file on one of them, and `hashing` where digests are computed; nothing
    /// that must answer at once runs there. Writes of background transfers block `backgroundDisk`: they may wait for
    /// everybody else's, and nobody waits behind them.
    package init(
        on loop: any LoopExecutor, disks: [any LoopExecutor], backgroundDisk: any LoopExecutor,
        hashing: any LoopExecutor, files: any FileTree, transport: TransportFactory
    ) {
        precondition(!disks.isEmpty, "files are written somewhere")
        self.loop = loop
        self.disks = disks
        self.backgroundDisk = backgroundDisk
        self.hashing = hashing
        self.files = files
        self.transport = transport(loop)
    }

    // MARK: What the owner asks for, done in this order

    /// Begins an attempt. `report` is called on the engine's loop, perhaps before this returns, and for the last time
    /// with `.ended`. After `stop` nothing begins.
    package nonisolated func start(_ spec: TransferSpec, report: @escaping @Sendable (TransferEvent) -> Void) {
        post { $0.begin(spec, report) }
    }

    /// Ends an attempt without another event of it; returns when its bytes are written and nobody touches its file any
    /// more. No effect on one that has ended.
    package nonisolated func cancel(_ id: String) async {
        await withCheckedContinuation { continuation in
            post { engine in
                guard let number = engine.numbers[id], let run = engine.runs[number] else {
                    return continuation.resume()
                }
                engine.leaving[number, default: []].append(continuation)
                run.cancel()
            }
        }
    }

    /// Has an attempt end with `.stopped`, where another one can go on without fetching a byte again.
    package nonisolated func stop(_ id: String) {
        post { $0.run(of: id)?.stop() }
    }

    /// Has an attempt take nothing more until `resume`; returns when all it took is in its file, and its last progress
    /// was told. A pause that lasts ends the attempt with `.stopped`, where it can.
    package nonisolated func pause(_ id: String) async {
        await withCheckedContinuation { continuation in
            post { engine in
                guard let run = engine.run(of: id) else { return continuation.resume() }
                run.pause { continuation.resume() }
            }
        }
    }

    /// Has an attempt go on, perhaps as one of another class.
    package nonisolated func resume(_ id: String, as transferClass: TransferClass) {
        post { $0.run(of: id)?.resume(as: transferClass) }
    }

    private nonisolated func post(_ body: @escaping @Sendable (isolated TransferEngine) -> Void) {
        loop.perform { self.assumeIsolated { body($0) } }
    }

    private func begin(_ spec: TransferSpec, _ report: @escaping @Sendable (TransferEvent) -> Void) {
        guard !isStopped else { return }
        precondition(numbers[spec.id] == nil, "two transfers of one download")
        lastNumber += 1
        let run = TransferRun(
            spec, number: lastNumber, engine: self, files: files, transport: transport, clock: loop, report: report)
        runs[lastNumber] = run
        numbers[spec.id] = lastNumber
        run.begin()
    }

    private func run(of id: String) -> TransferRun? { numbers[id].flatMap { runs[$0] } }

    // MARK: What holds for all

    /// Bytes a second for all background transfers together; nil for no limit.
    package func setBackgroundRate(_ bytesPerSecond: Int64?) {
        rate = RateLimit(bytesPerSecond: bytesPerSecond)
        for number in runs.keys.sorted() { runs[number]?.rateAllows() }
    }

    /// The machine has only these addresses now: connections that use another one are broken at once, before they would
    /// be found to be dead.
    package func dropConnections(keeping addresses: [String]) {
        if !isStopped { transport.dropConnections(keeping: addresses) }
    }

    /// Cancels all attempts and closes all connections, before the engine goes away.
    package func stop() async {
        guard !isStopped else { return }
        isStopped = true
        for id in numbers.sorted(by: { $0.value < $1.value }).map(\.key) { await cancel(id) }
        transport.stop()
    }

    /// Closes all connections without waiting for a write: what a kill leaves. In place of `stop`.
    package func abandon() {
        guard !isStopped else { return }
        isStopped = true
        runs = [:]
        numbers = [:]
        transport.stop()
    }

    // MARK: What runs ask for

    /// Calls `tick` of a run.
    nonisolated func tickLater(_ number: UInt64, at deadline: Duration) -> TimerToken {
        loop.schedule(at: deadline) { [weak self] in
            self?.assumeIsolated { $0.runs[number]?.tick() }
        }
    }

    /// Calls `pauseIsLong` of a run.
    nonisolated func stopLater(_ number: UInt64, after delay: Duration) -> TimerToken {
        loop.schedule(after: delay) { [weak self] in
            self?.assumeIsolated { $0.runs[number]?.pauseIsLong() }
        }
    }

    /// Charges bytes of a background transfer; true when it has to wait, until `rateAllows` of the run is called.
    nonisolated func mustWait(_ number: UInt64, afterTaking count: Int) -> Bool {
        assumeIsolated { engine in
            guard let until = engine.rate.take(Int64(count), at: engine.loop.now) else { return false }
            _ = engine.loop.schedule(at: until) { [weak engine] in
                engine?.assumeIsolated { $0.runs[number]?.rateAllows() }
            }
            return true
        }
    }

    /// Where the file of a run is written and synced: one thread after the other, so that many small files are synced at the
    /// same time.
    private nonisolated func disk(of number: UInt64, _ isDiscretionary: Bool) -> any LoopExecutor {
        isDiscretionary ? backgroundDisk : disks[Int(number % UInt64(disks.count))]
    }

    /// Appends the first `count` bytes of a piece on the disk loop and calls `appended` of the run.
    nonisolated func appendLater(
        _ number: UInt64, _ file: any AppendableFile, _ piece: Piece, _ count: Int, isDiscretionary: Bool
    ) {
        let disk = disk(of: number, isDiscretionary)
        let done = { @Sendable [weak self, loop] (failure: SystemCallError?) in
            loop.perform { [weak self] in self?.assumeIsolated { $0.runs[number]?.appended(failure) } }
        }
        disk.perform {
            do throws(SystemCallError) { try file.append(piece.bytes(upTo: count)) } catch { return done(error) }
            guard let fresh = file as? FreshFile, fresh.isWhole else { return done(nil) }
            // After the others that wait to be written: the disk then writes all of them together.
            disk.perform {
                do throws(SystemCallError) { try fresh.syncWhole() } catch { return done(error) }
                done(nil)
            }
        }
    }

    /// Adds bytes to a hash on its own loop and calls `hashed` of the run.
    nonisolated func hashLater(_ number: UInt64, _ hasher: ContentHasher, _ work: DigestFollower.Work) {
        hashing.perform { [weak self, loop] in
            var failure: SystemCallError?
            switch work {
            case .piece(let piece, let count): hasher.add(piece.bytes(upTo: count))
            case .file(let file, let start, let count):
                do throws(SystemCallError) {
                    try file.read(from: start, count: count) { hasher.add($0) }
                } catch { failure = error }
            }
            loop.perform { [weak self, failure] in
                self?.assumeIsolated { $0.runs[number]?.hashed(failure) }
            }
        }
    }

    /// Syncs the file on the disk loop, also the folder that has its name, and calls `synced` of the run.
    nonisolated func syncLater(
        _ number: UInt64, _ file: any AppendableFile, upTo offset: Int64, folder: String?, isDiscretionary: Bool
    ) {
        disk(of: number, isDiscretionary).perform { [weak self, loop, files] in
            var failure: SystemCallError?
            do throws(SystemCallError) {
                try file.sync()
                if let folder { try files.syncDirectory(folder) }
            } catch {
                // The kernel tells of it once, and the run may be gone that would hear of it: nobody goes on with a file
                // without a note.
                try? file.setAttribute(name: PartialNote.attribute, value: "")
                failure = error
            }
            _ = loop.schedule(at: .zero) { [weak self, failure] in
                self?.assumeIsolated { $0.runs[number]?.synced(upTo: offset, failure) }
            }
        }
    }

    /// Bytes that other runs will write and that the file system does not know of yet.
    nonisolated func promisedBytes(besides number: UInt64) -> Int64 {
        assumeIsolated { engine in
            engine.runs.values.reduce(0) { sum, run in
                let (next, overflow) = sum.addingReportingOverflow(run.number == number ? 0 : run.promisedBytes)
                return overflow ? .max : next
            }
        }
    }

    /// The run has told its last event.
    nonisolated func forget(_ number: UInt64, _ id: String) {
        assumeIsolated { engine in
            engine.runs[number] = nil
            engine.numbers[id] = nil
            for waiter in engine.leaving.removeValue(forKey: number) ?? [] { waiter.resume() }
        }
    }
}
