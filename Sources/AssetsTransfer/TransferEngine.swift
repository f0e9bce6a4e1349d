// Attempts of downloads: one request at a time into one partial file each. Whether there is another attempt after an
// interrupted one is decided above.
package import AssetsModel
package import AssetsOS

/// Runs attempts on one loop and syncs their files on another.
package actor TransferEngine {
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private nonisolated let loop: any LoopExecutor
    private nonisolated let disk: any LoopExecutor
    private nonisolated let files: any FileTree
    private let transport: any Transport
    private var runs: [UInt64: TransferRun] = [:]
    /// The run of each download.
    private var numbers: [String: UInt64] = [:]
    /// Who waits for the end of a cancelled run.
    private var leaving: [UInt64: [CheckedContinuation<Void, Never>]] = [:]
    private var lastNumber: UInt64 = 0
    private var isStopped = false

    /// `disk` is where writes and syncs block; nothing that must answer at once runs there.
    package init(
        on loop: any LoopExecutor, disk: any LoopExecutor, files: any FileTree, transport: TransportFactory
    ) {
        self.loop = loop
        self.disk = disk
        self.files = files
        self.transport = transport(loop)
    }

    /// Begins an attempt. `report` is called on the engine's loop, perhaps before this returns, and for the last time
    /// with `.ended`. After `stop` nothing begins.
    package func start(_ spec: TransferSpec, report: @escaping @Sendable (TransferEvent) -> Void) {
        guard !isStopped else { return }
        precondition(numbers[spec.id] == nil, "two transfers of one download")
        lastNumber += 1
        let run = TransferRun(
            spec, number: lastNumber, engine: self, files: files, transport: transport, clock: loop, report: report)
        runs[lastNumber] = run
        numbers[spec.id] = lastNumber
        run.begin()
    }

    /// Ends an attempt without another event of it; returns when its bytes are written and nobody touches its file any
    /// more. No effect on one that has ended.
    package func cancel(_ id: String) async {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            guard let number = numbers[id], let run = runs[number] else { return continuation.resume() }
            leaving[number, default: []].append(continuation)
            run.cancel()
        }
    }

    /// Changes how an attempt that runs is treated.
    package func setClass(_ id: String, _ transferClass: TransferClass) {
        guard let number = numbers[id] else { return }
        runs[number]?.spec.transferClass = transferClass
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

    /// Appends the first `count` bytes of a piece on the disk loop and calls `appended` of the run.
    nonisolated func appendLater(_ number: UInt64, _ file: any AppendableFile, _ piece: Piece, _ count: Int) {
        _ = disk.schedule(at: .zero) { [weak self, loop] in
            var failure: SystemCallError?
            do throws(SystemCallError) { try file.append(piece.bytes(upTo: count)) } catch { failure = error }
            _ = loop.schedule(at: .zero) { [weak self, failure] in
                self?.assumeIsolated { $0.runs[number]?.appended(failure) }
            }
        }
    }

    /// Syncs the file on the disk loop, also the folder that has its name, and calls `synced` of the run.
    nonisolated func syncLater(_ number: UInt64, _ file: any AppendableFile, upTo offset: Int64, folder: String?) {
        _ = disk.schedule(at: .zero) { [weak self, loop, files] in
            var failure: SystemCallError?
            do throws(SystemCallError) {
                try file.sync()
                if let folder { try files.syncDirectory(folder) }
            } catch { failure = error }
            _ = loop.schedule(at: .zero) { [weak self, failure] in
                self?.assumeIsolated { $0.runs[number]?.synced(upTo: offset, failure) }
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
