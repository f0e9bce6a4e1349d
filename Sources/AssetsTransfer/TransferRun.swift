// One attempt that runs: between its plan, the transport and the partial file.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

/// Does what `TransferPlan` says. Lives on the engine's loop.
final class TransferRun: TransportHandler {
    /// The attribute of a partial file that names the version its bytes belong to.
    static let labelAttribute = "user.backgroundassets.version"

    private enum Phase {
        case running
        /// No more comes; what was received is being written.
        case draining
        /// All is said but that the bytes are on stable storage.
        case closing(TransferOutcome)
        case ended
    }

    var spec: TransferSpec
    private let number: UInt64
    private unowned let engine: TransferEngine
    private let files: any FileTree
    private let transport: any Transport
    private let clock: any LoopExecutor
    private let report: (TransferEvent) -> Void

    private var phase = Phase.running
    /// Nobody wants to hear of it any more.
    private var isCancelled = false
    private var plan: TransferPlan?
    private var file: (any AppendableFile)?
    private var label: String?
    private var task: TransportTask?

    private var writes: WriteBehind?
    /// The transport waits until the disk has taken some.
    private var isPaused = false
    private var timer: TimerToken?
    /// The timer fires in time for the next progress report, not only for the next sync.
    private var isTickSoon = false
    private var reported: Int64 = -1

    /// Bytes on stable storage.
    private var syncedOffset: Int64 = 0
    private var isSyncing = false
    /// A file that was made is surely there after a power cut only once its folder was synced.
    private var isNameDurable = false
    /// When the first byte came that the last sync does not cover.
    private var unsyncedSince: Duration?

    init(
        _ spec: TransferSpec, number: UInt64, engine: TransferEngine, files: any FileTree,
        transport: any Transport, clock: any LoopExecutor, report: @escaping (TransferEvent) -> Void
    ) {
        self.spec = spec
        self.number = number
        self.engine = engine
        self.files = files
        self.transport = transport
        self.clock = clock
        self.report = report
    }

    // MARK: Begin and end

    func begin() {
        do throws(SystemCallError) {
            let file = try files.openAppendable(spec.partialPath)
            self.file = file
            isNameDurable = (spec.resume?.syncedOffset ?? 0) > 0
            label = try? files.attribute(spec.partialPath, name: Self.labelAttribute)
            let partial = TransferPlan.Partial(
                length: file.length, label: label, storageEpoch: try files.storageEpoch())
            plan = TransferPlan(order, partial: partial)
        } catch {
            return end(.interrupted(storageInterruption(error)))
        }
        perform { $0.begin() }
    }

    private var order: TransferPlan.Order {
        var order = TransferPlan.Order(url: spec.url)
        order.method = spec.method
        order.headers = spec.headers
        order.hasBody = !spec.body.isEmpty
        order.resume = spec.resume
        order.expectedSize = spec.expectedSize
        order.sizeMustMatch = spec.sizeMustMatch
        order.sizeLimit = spec.sizeLimit
        order.allowsLoopbackHTTP = spec.allowsLoopbackHTTP
        order.authentication = spec.authentication
        order.pins = spec.pins
        order.admits = spec.admits
        return order
    }

    /// Ends without a word, once what was received is written; then `forget` of the engine is called.
    func cancel() {
        isCancelled = true
        stopListening()
        switch phase {
        case .ended: break
        case .closing: leave()
        case .running, .draining: drain { $0.leave() }
        }
    }

    private func end(_ outcome: TransferOutcome) {
        guard !isCancelled else { return leave() }
        reportProgress()
        leave()
        report(.ended(outcome))
    }

    private func leave() {
        if case .ended = phase { return }
        phase = .ended
        stopListening()
        if let timer { clock.cancel(timer) }
        timer = nil
        engine.forget(number, spec.id)
    }

    private func stopListening() {
        if let task { transport.cancel(task) }
        task = nil
        isPaused = false
    }

    // MARK: From the transport

    func received(_ head: TransportHead) {
        perform { $0.head(head) }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard case .running = phase else { return }
        let action = plan?.body(Int64(bytes.count))
        if case .append? = action { store(bytes) } else { perform { _ in action ?? .ignore } }
    }

    func ended(_ failure: TransportFailure?) {
        task = nil
        perform { $0.end(failure) }
    }

    // MARK: What the plan says

    private func perform(_ event: (inout TransferPlan) -> TransferPlan.Action) {
        guard case .running = phase, var plan else { return }
        let action = event(&plan)
        self.plan = plan
        do throws(SystemCallError) {
            switch action {
            case .request(let hop, let keeping):
                stopListening()
                drain { run throws(SystemCallError) in
                    run.phase = .running
                    run.writes = nil
                    try run.cut(to: keeping)
                    run.send(hop)
                }
            case .take(let start):
                try take(start)
            case .append, .ignore:
                break
            case .complete(let length):
                drain { run in
                    run.close(
                        .received(
                            length: length, inode: run.file?.inode ?? 0,
                            resume: plan.resumePoint(syncedOffset: length)))
                }
            case .interrupt(let interruption):
                stopListening()
                drain { $0.close(.interrupted(interruption)) }
            case .challenge(let challenge):
                stopListening()
                drain { $0.close(.challenged(challenge)) }
            case .refuse(let failure, let reason):
                stopListening()
                drain { $0.end(.refused(failure, reason)) }
            }
        } catch {
            end(.interrupted(storageInterruption(error)))
        }
    }

    private func send(_ hop: TransferPlan.Hop) {
        let request = TransportRequest(
            url: hop.url, method: hop.method, headers: hop.headers, body: hop.sendsBody ? spec.body : [],
            allowsHTTP: hop.allowsHTTP, trustsExtraAuthorities: spec.trustsExtraAuthorities, pins: hop.pins)
        task = transport.start(request, handler: self)
    }

    private func cut(to length: Int64) throws(SystemCallError) {
        guard let file, file.length != length else { return }
        try file.truncate(to: length)
        syncedOffset = min(syncedOffset, length)
    }

    private func take(_ start: TransferPlan.Start) throws(SystemCallError) {
        // First the label, then the bytes go: after a crash in between no note fits the file.
        if start.offset == 0 { try setLabel(start.label) }
        try cut(to: start.offset)
        syncedOffset = min(spec.resume?.syncedOffset ?? 0, start.offset)
        try file?.reserve(total: start.total)
        if let file {
            let (engine, number) = (engine, number)
            writes = WriteBehind(file) { engine.appendLater(number, $0, $1, $2) }
        }
        if let accepted = plan?.accepted { report(.authenticated(accepted)) }
        report(.began(resumedAt: start.offset, expected: expected))
        reportCheckpoint()
    }

    private func setLabel(_ new: String?) throws(SystemCallError) {
        guard new != label else { return }
        do throws(SystemCallError) {
            try files.setAttribute(spec.partialPath, name: Self.labelAttribute, value: new ?? "")
        } catch {
            // A file that keeps the label of another version must not be.
            if label != nil {
                try files.remove(spec.partialPath)
                file = try files.openAppendable(spec.partialPath)
                isNameDurable = false
            }
        }
        label = new
    }

    private var expected: Int64 {
        if let total = plan?.start?.total, total > 0 { return total }
        return spec.expectedSize
    }

    // MARK: Bytes

    private func store(_ bytes: UnsafeRawBufferPointer) {
        guard let writes else { return }
        writes.store(bytes)
        if writes.isFull, let task {
            isPaused = true
            transport.pause(task)
        }
        guard !isTickSoon else { return }
        let now = clock.now
        if unsyncedSince == nil { unsyncedSince = now }
        arm(at: now + PolicyNumbers.progressTime)
        isTickSoon = true
    }

    /// Bytes in the file.
    private var length: Int64 { writes?.length ?? file?.length ?? 0 }

    /// Does `body` once all that was received is written.
    private func drain(_ body: @escaping (TransferRun) throws(SystemCallError) -> Void) {
        phase = .draining
        let finish = { [unowned self] in
            do throws(SystemCallError) { try body(self) } catch { end(.interrupted(storageInterruption(error))) }
        }
        if let writes { writes.drain(finish) } else { finish() }
    }

    /// A write that was asked for is done.
    func appended(_ failure: SystemCallError?) {
        writes?.written(failure)
        if let failure, !isOver { return end(.interrupted(storageInterruption(failure))) }
        guard case .running = phase else { return }
        if length - syncedOffset >= PolicyNumbers.syncBytes { sync() }
        guard isPaused, writes?.isFull == false, let task else { return }
        isPaused = false
        transport.resume(task)
    }

    private var isOver: Bool {
        if case .ended = phase { true } else { false }
    }

    private func arm(at deadline: Duration) {
        if let timer { clock.cancel(timer) }
        timer = engine.tickLater(number, at: deadline)
    }

    /// Time for a progress report or a sync.
    func tick() {
        timer = nil
        isTickSoon = false
        guard case .running = phase else { return }
        // Bytes that come fast are written without being asked for.
        if let writes {
            if !writes.wasBegun { writes.flush() }
            writes.wasBegun = false
        }
        reportProgress()
        syncIfDue()
        if writes?.isEmpty == false, !isTickSoon {
            arm(at: clock.now + PolicyNumbers.progressTime)
            isTickSoon = true
        }
    }

    private func syncIfDue() {
        guard !isSyncing, length > syncedOffset else { return }
        let since = unsyncedSince ?? clock.now
        unsyncedSince = since
        if clock.now - since >= PolicyNumbers.syncTime { sync() } else { arm(at: since + PolicyNumbers.syncTime) }
    }

    private func reportProgress() {
        guard plan?.start != nil, length != reported else { return }
        reported = length
        report(.progress(received: reported, expected: expected))
    }

    // MARK: Stable storage

    private func sync() {
        guard !isSyncing, let file else { return }
        isSyncing = true
        unsyncedSince = nil
        engine.syncLater(number, file, upTo: length, folder: isNameDurable || isComplete ? nil : folder)
        isNameDurable = true
    }

    /// A file that is all there gets another name at once, which is then made durable.
    private var isComplete: Bool {
        if case .closing(.received) = phase { true } else { false }
    }

    private var folder: String? {
        spec.partialPath.lastIndex(of: "/").map { String(spec.partialPath[..<$0]) } ?? "."
    }

    /// The sync that was asked for is done.
    func synced(upTo offset: Int64, _ failure: SystemCallError?) {
        isSyncing = false
        if let failure, !isOver {
            // The kernel may have dropped what it could not write: only what was synced before is surely there.
            stopListening()
            return drain { run in
                run.writes = nil
                try? run.cut(to: run.syncedOffset)
                run.end(.interrupted(run.storageInterruption(failure)))
            }
        }
        syncedOffset = offset
        reportCheckpoint()
        switch phase {
        case .closing(let outcome):
            if length > syncedOffset { sync() } else { end(outcome) }
        case .running:
            // What came meanwhile is covered by the next sync; its time is counted from now.
            if length > syncedOffset, unsyncedSince == nil {
                unsyncedSince = clock.now
                if timer == nil { arm(at: clock.now + PolicyNumbers.syncTime) }
            }
        case .draining, .ended:
            break
        }
    }

    /// Ends once all bytes are on stable storage.
    private func close(_ outcome: TransferOutcome) {
        phase = .closing(outcome)
        reportProgress()
        // A file received anew may be as long as what was synced of another version: it is always synced.
        if !isComplete, length <= syncedOffset, !isSyncing { return end(outcome) }
        sync()
    }

    private func reportCheckpoint() {
        guard let point = plan?.resumePoint(syncedOffset: syncedOffset) else { return }
        report(.checkpoint(point))
    }

    private func storageInterruption(_ error: SystemCallError) -> Interruption {
        let isFull = error.number == ENOSPC || error.number == EDQUOT
        return Interruption(
            kind: .storage, reason: isFull ? .space : .volume, receivedAny: (plan?.received ?? 0) > 0,
            failure: DownloadFailure(
                domain: .url, code: URLErrorCode.cannotWriteToFile,
                reason: isFull ? "no space is left on the device" : "the file cannot be written: \(error)"))
    }
}
