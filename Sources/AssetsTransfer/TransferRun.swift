// One attempt that runs: between its plan, the transport and the partial file.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

/// Does what `TransferPlan` says. Lives on the engine's loop.
final class TransferRun: TransportHandler {
    enum Phase {
        case running
        /// No more comes; what was received is being written.
        case draining
        /// All is written; what so many bytes come to is being found out.
        case checking(length: Int64)
        /// All is said but that the bytes are on stable storage.
        case closing(TransferOutcome)
        case ended
    }

    var spec: TransferSpec
    let number: UInt64
    unowned let engine: TransferEngine
    let files: any FileTree
    let transport: any Transport
    let clock: any LoopExecutor
    let report: (TransferEvent) -> Void

    var phase = Phase.running
    /// Nobody wants to hear of it any more.
    private var isCancelled = false
    private(set) var plan: TransferPlan?
    private(set) var file: (any AppendableFile)?
    /// Bytes of the file that have their room on the disk, whether they came yet or not.
    var roomTaken: Int64 = 0
    /// What stands beside the bytes, `PartialNote.attribute`.
    var note: PartialNote?
    private(set) var task: TransportTask?
    /// The first bytes of a body, while it is in doubt whether it is the file: pieces may be as short as a byte.
    private var beginning: [UInt8] = []

    var writes: WriteBehind?
    /// What the bytes come to, where that matters.
    var follower: DigestFollower?
    /// What the transport waits for.
    var holds: Holds = []
    /// Who waits until a pause has begun.
    var pauseWaiters: [() -> Void] = []
    var pauseTimer: TimerToken?
    /// The first bytes after a pause are told of at once: somebody looks.
    var tellsNextBytes = false
    var timer: TimerToken?
    /// The timer fires in time for the next progress report, not only for the next sync.
    var isTickSoon = false
    var reported: Int64 = -1
    /// What the owner knows of whether it can stop; nil when it has asked for a stop that was not possible.
    var isStoppable: Bool? = false
    /// The owner knows that no more comes.
    private var isGatheredReported = false

    /// Bytes on stable storage.
    var syncedOffset: Int64 = 0
    var isSyncing = false
    /// The sync under way was asked for before the bytes that the file has now.
    var isSyncStale = false
    /// A file that was made is surely there after a power cut only once its folder was synced.
    var isNameDurable = false
    /// When the first byte came that the last sync does not cover.
    var unsyncedSince: Duration?

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
            let file = try openFile()
            self.file = file
            isNameDurable = !(file is FreshFile) && (spec.resume?.syncedOffset ?? 0) > 0
            let partial = TransferPlan.Partial(
                length: file.length, note: note, storageEpoch: try files.storageEpoch())
            plan = TransferPlan(order, partial: partial)
        } catch {
            return end(.interrupted(storageInterruption(error)))
        }
        perform { $0.begin() }
    }

    private func openFile() throws(SystemCallError) -> any AppendableFile {
        let status = try files.status(spec.partialPath)
        guard let status, status.size > 0 else {
            // One without a byte may lack its marks.
            if status != nil { try files.remove(spec.partialPath) }
            return FreshFile(spec.partialPath, in: files, marks: spec.marks)
        }
        let file = try files.openAppendable(spec.partialPath)
        note = (try? files.attribute(spec.partialPath, name: PartialNote.attribute)).flatMap { PartialNote($0) }
        return file
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
        order.isManifest = spec.isManifest
        order.digest = spec.digest
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
        case .closing, .checking: leave()
        case .running, .draining: drain { $0.leave() }
        }
    }

    func end(_ outcome: TransferOutcome) {
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
        endPause()
        engine.forget(number, spec.id)
    }

    func stopListening() {
        if let task { transport.cancel(task) }
        task = nil
        holds.formIntersection(.owner)
    }

    // MARK: From the transport

    func received(_ head: TransportHead) {
        perform { $0.head(head) }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        guard case .running = phase else { return }
        guard plan?.mustSeeBeginning == true else { return take(bytes) }
        let lacking = PolicyNumbers.pageBeginningMax - beginning.count
        beginning += bytes.prefix(lacking)
        guard bytes.count >= lacking else { return }
        judgeBeginning()
        take(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(lacking)))
    }

    /// Has the plan decide by the first bytes, or by all there are, and goes on with them.
    private func judgeBeginning() {
        let bytes = beginning
        beginning = []
        perform { $0.beginning(bytes) }
        bytes.withUnsafeBytes { take($0) }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        guard case .running = phase, !bytes.isEmpty else { return }
        let action = plan?.body(Int64(bytes.count))
        if case .append? = action { store(bytes) } else { perform { _ in action ?? .ignore } }
    }

    func ended(_ failure: TransportFailure?) {
        task = nil
        if failure == nil, plan?.mustSeeBeginning == true { judgeBeginning() }
        perform { $0.end(failure) }
    }

    // MARK: What the plan says

    func perform(_ event: (inout TransferPlan) -> TransferPlan.Action) {
        guard case .running = phase, var plan else { return }
        let action = event(&plan)
        self.plan = plan
        do throws(SystemCallError) {
            switch action {
            case .request(let hop):
                stopListening()
                drain { run in
                    run.phase = .running
                    run.writes = nil
                    run.follower = nil
                    run.send(hop)
                }
            case .take(let start):
                try take(start)
            case .append, .ignore:
                break
            case .check(let check, let length):
                reportGathered()
                drain { $0.check(check, length: length) }
            case .complete(let length):
                reportGathered()
                drain { run throws(SystemCallError) in
                    // One without a byte was not written yet.
                    try (run.file as? FreshFile)?.made(isWhole: true)
                    run.close(
                        .received(
                            length: length, inode: run.file?.inode ?? 0,
                            resume: plan.resumePoint(syncedOffset: length), digest: plan.confirmedDigest))
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

    private func reportGathered() {
        if !isGatheredReported { report(.gathered(unwritten: writes?.unwritten ?? 0)) }
        isGatheredReported = true
    }

    private func send(_ hop: TransferPlan.Hop) {
        var proxy: ProxyServer?
        switch spec.proxies.choice(for: hop.address) {
        case .through(let server): proxy = server
        case .direct: break
        case .unusable(let name):
            return perform {
                $0.end(
                    TransportFailure(
                        kind: .proxy, code: URLErrorCode.cannotConnectToHost,
                        text: "\(name) names no proxy: it must be a URL of http, https, socks5 or socks5h"))
            }
        }
        let request = TransportRequest(
            url: hop.url, method: hop.method, headers: hop.headers, body: hop.sendsBody ? spec.body : [],
            allowsHTTP: hop.allowsHTTP, isDiscretionary: isDiscretionary, allowsHTTP2: fitsInMemory,
            trustsExtraAuthorities: spec.trustsExtraAuthorities, pins: hop.pins, proxy: proxy)
        let task = transport.start(request, handler: self)
        self.task = task
        if !holds.isEmpty { transport.pause(task) }
    }

    /// What was announced is so little that it is never paused for the disk.
    private var fitsInMemory: Bool {
        !isDiscretionary && spec.expectedSize > 0 && spec.expectedSize <= WriteBehind.bytesMax
    }

    func cut(to length: Int64) throws(SystemCallError) {
        guard let file, file.length != length else { return }
        try file.truncate(to: length)
        syncedOffset = min(syncedOffset, length)
    }

    private func take(_ start: TransferPlan.Start) throws(SystemCallError) {
        let (lost, synced) = (file?.length ?? 0, syncedOffset)
        // First the note goes, then the bytes, then the new note comes: after a kill in between none stands beside bytes
        // that are not its own.
        if start.offset == 0 { try setNote(nil) }
        try cut(to: start.offset)
        if let new = plan?.note(after: synced) { try setNote(new) }
        syncedOffset = min(plan?.resume?.syncedOffset ?? 0, start.offset)
        isSyncStale = isSyncing
        (file as? FreshFile)?.total = start.total
        if let lacking = try takeRoom(for: start.total) { return end(.interrupted(lacking)) }
        if let file {
            let (engine, number) = (engine, number)
            follower = start.check.map { follow(file, $0) }
            writes = WriteBehind(file, expecting: max(0, start.total - start.offset), follower: follower) {
                [unowned self] in
                engine.appendLater(number, $0, $1, $2, isDiscretionary: isDiscretionary)
            }
            follower?.follow(upTo: start.offset)
        }
        if let accepted = plan?.accepted { report(.authenticated(accepted)) }
        if let why = plan?.whyStartedOver { report(.startedOver(lost: lost, why)) }
        report(.began(resumedAt: start.offset, expected: expected))
        // What an earlier attempt left must not wait for this one's first sync: a power cut would cost the time of both.
        if start.offset > syncedOffset { sync() }
        reportCanStop()
    }

    private func reportCanStop() {
        let canStop = plan?.canStop == true
        if canStop != isStoppable { report(.canStop(canStop)) }
        isStoppable = canStop
    }

    func setNote(_ new: PartialNote?) throws(SystemCallError) {
        // One that could not be read, and is not known of, goes as well.
        guard new != note || new == nil else { return }
        if let fresh = file as? FreshFile, !fresh.exists {
            fresh.note = new
            note = new
            return
        }
        do throws(SystemCallError) {
            try files.setAttribute(spec.partialPath, name: PartialNote.attribute, value: new?.text ?? "")
            note = new
        } catch {
            // Bytes that lack a note of their own are only fetched again. A note that is left beside bytes of another
            // version must not be.
            guard new == nil else { return }
            try files.remove(spec.partialPath)
            file = FreshFile(spec.partialPath, in: files, marks: spec.marks)
            note = nil
            isNameDurable = false
        }
    }

    var expected: Int64 {
        if let total = plan?.start?.total, total > 0 { return total }
        return spec.expectedSize
    }
}
