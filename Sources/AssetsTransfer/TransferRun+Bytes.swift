// What an attempt receives: to memory, to the file, and what is told of it.
internal import AssetsModel
internal import AssetsOS

extension TransferRun {
    func store(_ bytes: UnsafeRawBufferPointer) {
        guard let writes else { return }
        writes.store(bytes)
        if tellsNextBytes { writes.flush() }
        if writes.isFull { hold(.disk) }
        if isDiscretionary, engine.mustWait(number, afterTaking: bytes.count) { hold(.rate) }
        guard !isTickSoon else { return }
        let now = clock.now
        if unsyncedSince == nil { unsyncedSince = now }
        arm(at: now + PolicyNumbers.progressTime)
        isTickSoon = true
    }

    /// Bytes in the file.
    var length: Int64 { writes?.length ?? file?.length ?? 0 }

    /// Does `body` once all that was received is written.
    func drain(_ body: @escaping (TransferRun) throws(SystemCallError) -> Void) {
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
        follower?.follow(upTo: length)
        goOnReceiving()
    }

    /// A piece came back: there may be room for more.
    func goOnReceiving() {
        pauseProceeds()
        if writes?.isFull == false { release(.disk) }
    }

    var isOver: Bool {
        if case .ended = phase { true } else { false }
    }

    func arm(at deadline: Duration) {
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

    func reportProgress() {
        guard plan?.start != nil, length != reported else { return }
        reported = length
        report(.progress(received: reported, expected: expected))
    }
}
