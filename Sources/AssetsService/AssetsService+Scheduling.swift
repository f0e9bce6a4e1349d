// What runs next: asks the rule and does what it says.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    /// A record became startable.
    func enqueue(_ record: DownloadRecord) {
        queue.insert(record.queueEntry, at: seams.loop.now)
        pumpSoon()
    }

    /// Fills free places soon.
    func pumpSoon() {
        mustPumpAgain = true
        guard !isPumping else { return }
        isPumping = true
        launch { service in await service.pump() }
    }

    private func pump() async {
        while mustPumpAgain && !isStopping {
            mustPumpAgain = false
            do throws(StoreError) { try await fill() } catch {
                journal(.warning, .space, "the queue cannot be read: \(error)")
                queue.invalidate()
                _ = seams.loop.schedule(after: PolicyNumbers.storagePauseMin) { self.assumeIsolated { $0.pumpSoon() } }
            }
        }
        isPumping = false
        activityChanged?()
    }

    private func fill() async throws(StoreError) {
        while !isStopping {
            switch queue.next(at: seams.loop.now, isHeld: { self.isHeld($0, $1) }) {
            case .find(let transferClass):
                let apps = try await seams.store.queuedApps(transferClass)
                queue.found(apps, transferClass, at: seams.loop.now)
                await planRetryTimer()
            case .load(let app, let transferClass, let limit):
                // Those that run or ask are among the answers: the store's state does not tell them from those that wait.
                let limit = limit + running.count + challenges.count
                let found = try await seams.store.queue(transferClass, app: app, at: calendarNow, limit: limit)
                let waiting = found.filter { running[$0.id] == nil && challenges[$0.id] == nil }
                queue.load(waiting, app: app, transferClass, isAll: found.count < limit)
            case .start(let entry):
                try await start(entry)
            case .yield(let id, let cause):
                running[id]?.stopCause = cause
                seams.transfers.stop(id)
            case .wait(let until):
                return planSliceTimer(until)
            }
        }
    }

    /// Starts what the entry stands for, as its row is by now.
    private func start(_ entry: QueueEntry) async throws(StoreError) {
        let found: DownloadRecord?
        do throws(StoreError) { found = try await seams.store.downloadHere(id: entry.id) } catch {
            queue.end(entry.id, at: seams.loop.now)
            throw error
        }
        guard let record = found, isStartable(record) else { return queue.end(entry.id, at: seams.loop.now) }
        guard record.transferClass == entry.transferClass else {
            queue.end(entry.id, at: seams.loop.now)
            return queue.insert(record.queueEntry, at: seams.loop.now)
        }
        await start(record)
    }

    /// What an ended attempt waited for may have come before the attempt was let go of: whoever looked at the queue in that
    /// moment has left the download out.
    func enqueueIfDue(_ id: String) async {
        guard let record = try? await downloadRecord(id: id), isStartable(record) else { return }
        enqueue(record)
    }

    func isStartable(_ record: DownloadRecord) -> Bool {
        guard case .waiting = record.state, record.notBefore.map({ $0 <= calendarNow }) ?? true else { return false }
        return running[record.id] == nil && challenges[record.id] == nil && !isHeld(record)
            && !leaving.contains(record.id)
    }

    func isHeld(_ record: DownloadRecord) -> Bool { isHeld(record.app, record.transferClass) }

    /// Non-essential downloads wait until the gate is open: essential goes first. And those of an app that has too many
    /// questions to answer wait for its answers.
    private func isHeld(_ app: String, _ transferClass: TransferClass) -> Bool {
        transferClass != .essential && apps[app]?.gate == .shut || isHeldByChallenges(app)
    }

    // MARK: Timers

    /// Asks the rule again when a transfer has had its slice.
    private func planSliceTimer(_ due: Duration?) {
        guard due != sliceTimer?.at else { return }
        if let timer = sliceTimer { seams.loop.cancel(timer.token) }
        sliceTimer = nil
        guard let due else { return }
        let token = seams.loop.schedule(at: due) {
            self.assumeIsolated { service in
                service.sliceTimer = nil
                service.pumpSoon()
            }
        }
        sliceTimer = (token, due)
    }

    /// Wakes the queue when the next postponed download is due.
    func planRetryTimer() async {
        retryPlans += 1
        let plan = retryPlans
        var earliest: Duration?
        for transferClass in TransferClass.allCases {
            guard let due = try? await seams.store.earliestNotBefore(transferClass, after: calendarNow) else {
                continue
            }
            earliest = min(earliest ?? due, due)
        }
        // Whoever asked after this did knows more.
        guard plan == retryPlans else { return }
        guard let due = earliest else {
            if let timer = retryTimer { seams.loop.cancel(timer.token) }
            retryTimer = nil
            return
        }
        if let timer = retryTimer {
            guard due != timer.at else { return }
            seams.loop.cancel(timer.token)
        }
        // Of the process clock, which stands still while the machine sleeps and goes on when the calendar is set back.
        let delay = min(max(.milliseconds(1), due - calendarNow), PolicyNumbers.planLookMax)
        let token = seams.loop.schedule(after: delay) { self.assumeIsolated { $0.retryTimerFired() } }
        retryTimer = (token, due)
    }

    private func retryTimerFired() {
        launch { service in
            await service.lookAtCalendar()
            service.retryTimer = nil
            service.queue.invalidate()
            service.pumpSoon()
        }
    }

    /// What waits until a time of a calendar that was set back is not made to wait for as much longer.
    ///
    /// - Parameter witness: Another time that the calendar once had.
    func lookAtCalendar(witness: Duration? = nil) async {
        let step = calendarWatch.setBack(calendar: calendarNow, process: seams.loop.now, witness: witness)
        guard let step else { return }
        journal(.warning, .none, "the calendar was set back by \(step.shownRoughly); nothing waits longer for that")
        _ = try? await commit([.setBackWaits(by: step)])
    }
}
