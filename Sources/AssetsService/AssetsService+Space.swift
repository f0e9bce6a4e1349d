// Room on the device's disk: who waits for some, and when there is enough.
internal import AssetsModel
internal import AssetsOS

/// The last look at the file system, and what waits for room.
struct SpaceLook {
    var view: SpaceView?
    /// In process time.
    var takenAt = Duration.zero
    /// Some download can go on once so many bytes are free; nil while none waits.
    var wantedFree: Int64?
    /// Looks since the first began to wait.
    var looks = 0
    var timer: TimerToken?
    var isWatched: Bool { wantedFree != nil }
}

extension AssetsService {
    private var spacePolicy: SpacePolicy { SpacePolicy(ownFloor: settings.freeSpace) }

    /// Why there is no room for a download; nil when there is. An estimate: the last word has the transfer, which knows
    /// the file's real size.
    func lacksSpace(_ record: DownloadRecord) async -> Interruption? {
        // Small files come by the thousand: for them a look holds for a moment.
        let isSmall = (1..<PolicyNumbers.reservedSizeMin).contains(record.request.size)
        let isNew = space.view != nil && seams.loop.now - space.takenAt < PolicyNumbers.spaceViewTime
        if !isSmall || !isNew { await lookAtSpace() }
        guard lackingSpace(record, allocated: record.received) != nil else { return nil }
        // Its partial file may have its room since an earlier attempt.
        let (files, path) = (seams.files, record.partialPath)
        await lookAtSpace()
        let status = try? await seams.disk.run { () throws(SystemCallError) in try files.status(path) }
        return lackingSpace(record, allocated: status?.allocated ?? 0)
    }

    func lackingSpace(_ record: DownloadRecord, allocated: Int64) -> Interruption? {
        guard let view = space.view else { return nil }
        let size = record.request.size
        let needed = size > 0 ? max(0, size - allocated) : PolicyNumbers.unknownSizeRoom
        guard needed > 0 else { return nil }
        let missing = spacePolicy.shortage(of: needed, for: record.transferClass, in: view, promised: promised)
        return missing > 0 ? .lackingSpace(missing, in: view) : nil
    }

    /// Bytes of downloads whose engine has not taken their room yet.
    private var promised: Int64 {
        running.values.reduce(0) { sum, transfer in
            guard !transfer.hasBegun else { return sum }
            let (next, overflow) = sum.addingReportingOverflow(max(0, transfer.record.request.size - transfer.received))
            return overflow ? .max : next
        }
    }

    private func lookAtSpace() async {
        let files = seams.files
        let found = try? await seams.disk.run { () throws(SystemCallError) in try files.space() }
        space.view = found.map { SpaceView(free: $0.free, total: $0.total) }
        space.takenAt = seams.loop.now
    }

    /// Looks at intervals from now on whether so many bytes are free.
    func watchSpace(_ wantedFree: Int64) {
        space.wantedFree = min(space.wantedFree ?? .max, wantedFree)
        if space.timer == nil { planLook() }
    }

    private func planLook() {
        space.looks += 1
        let pause = PolicyNumbers.storagePause(afterTries: space.looks)
        space.timer = seams.loop.schedule(after: pause) {
            self.assumeIsolated { service in service.launch { await $0.lookForRoom() } }
        }
    }

    private func lookForRoom() async {
        await lookAtSpace()
        space.timer = nil
        guard !isStopping, let wanted = space.wantedFree else { return }
        let hasRoom = space.view.map { $0.free >= wanted } ?? false
        // Room may also come from what was promised to others and is not needed any more: that shows in no look.
        guard hasRoom || space.looks >= PolicyNumbers.spaceLooksMax else { return planLook() }
        // Who still lacks some says so again.
        space.wantedFree = nil
        space.looks = 0
        await retryWaiting(for: [.space])
    }
}
