// Attempts that stop or pause: bytes stay where they are, and another request or the same goes on there.
internal import AssetsModel
internal import AssetsOS

extension TransferRun {
    /// Reasons not to take bytes now.
    struct Holds: OptionSet {
        let rawValue: Int
        /// The disk has to take some first.
        static let disk = Holds(rawValue: 1)
        /// The owner has asked for a pause.
        static let owner = Holds(rawValue: 2)
        /// Background transfers have had their share of this moment.
        static let rate = Holds(rawValue: 4)
    }

    var isDiscretionary: Bool { spec.transferClass == .background }

    /// Ends with `.stopped` once what was received is on stable storage; no effect where that would cost bytes. Who asks
    /// between two answers is told with the second one whether it could stop from then on.
    func stop() {
        guard case .running = phase, plan?.canStop == true else {
            isStoppable = nil
            return
        }
        stopListening()
        drain { $0.close(.stopped) }
    }

    /// Takes nothing more until `resume`, on the same connection; calls `body` once what was received is in the file.
    func pause(_ body: @escaping () -> Void) {
        guard case .running = phase else { return body() }
        pauseWaiters.append(body)
        hold(.owner)
        if pauseTimer == nil { pauseTimer = engine.stopLater(number, after: PolicyNumbers.pausedConnectionMax) }
        writes?.flush()
        tellPausedIfWritten()
    }

    /// A pause has lasted so long that its connection is better closed.
    func pauseIsLong() {
        pauseTimer = nil
        stop()
    }

    func resume(as transferClass: TransferClass) {
        spec.transferClass = transferClass
        if let task { transport.setDiscretionary(task, isDiscretionary) }
        tellsNextBytes = holds.contains(.owner)
        if !isDiscretionary { release(.rate) }
        endPause()
        release(.owner)
    }

    /// The share of this moment is paid for.
    func rateAllows() { release(.rate) }

    /// Nobody waits for a pause any more, and nothing follows from it.
    func endPause() {
        if let pauseTimer { clock.cancel(pauseTimer) }
        pauseTimer = nil
        let waiters = pauseWaiters
        pauseWaiters = []
        for waiter in waiters { waiter() }
    }

    /// Some was written, or given back by the hash.
    func pauseProceeds() {
        if !pauseWaiters.isEmpty {
            writes?.flush()
            tellPausedIfWritten()
        } else if tellsNextBytes, length > reported {
            tellsNextBytes = false
            reportProgress()
        }
    }

    private func tellPausedIfWritten() {
        guard writes?.isEmpty ?? true else { return }
        // What waits for long needs no memory.
        writes?.trim()
        reportProgress()
        let waiters = pauseWaiters
        pauseWaiters = []
        for waiter in waiters { waiter() }
    }

    func hold(_ reason: Holds) {
        let wasFree = holds.isEmpty
        holds.insert(reason)
        if wasFree, let task { transport.pause(task) }
    }

    func release(_ reason: Holds) {
        guard holds.contains(reason) else { return }
        holds.remove(reason)
        if holds.isEmpty, let task { transport.resume(task) }
    }
}
