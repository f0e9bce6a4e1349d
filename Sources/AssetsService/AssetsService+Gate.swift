// Essential downloads of an installation, and the launch gate that waits for them.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    func watchEssentials(_ id: String) async {
        guard let app = installations[id]?.record.app,
            let live = try? await seams.store.counts(app: app, .essential)
        else { return }
        installations[id]?.essentialRemaining = live.count
        if let total = installations[id]?.progress.expected, total == 0 {
            installations[id]?.progress.asked(essentialBytes: live.size)
        }
        reportEssentials(id)
    }

    /// An essential download ended, well or not.
    func noteEssentialEnded(_ record: DownloadRecord, received: Int64) {
        guard record.request.isEssential, let id = installation(of: record) else { return }
        installations[id]?.essentialRemaining -= 1
        installations[id]?.essentialReceived += received
        reportEssentials(id)
    }

    /// Bytes came in for a download; tells the gate's patience and the followers.
    func installationProgressed(_ record: DownloadRecord) {
        guard let id = installation(of: record) else { return }
        switch record.request.kind {
        case .archive:
            let transfer = running[record.id]
            installations[id]?.progress.archive(
                received: transfer?.received ?? 0, expected: transfer?.expected ?? record.request.size)
        case .manifest: break
        case .url:
            guard record.request.isEssential else { return }
            reportEssentials(id)
        }
        planUpdate(id)
    }

    func reportEssentials(_ id: String) {
        guard let installation = installations[id] else { return }
        var received = installation.essentialReceived
        for transfer in running.values
        where transfer.record.app == installation.record.app && transfer.record.request.isEssential {
            if case .waiting = transfer.record.state { received += transfer.received }
        }
        installations[id]?.progress.essential(received: received)
        planUpdate(id)
        guard installation.record.phase == .essential else { return }
        installationEvent(.essentials(remaining: installation.essentialRemaining, received: received), of: id)
    }

    func openGate(of appID: String, _ opening: InstallLife.GateOpening) async {
        guard var app = apps[appID] else { return }
        await endExtension(of: appID)
        let link = "Applications/\(appID)/current"
        let build = app.buildFolder
        let files = seams.files
        let isLinked = await retryingStore { () async throws(AssetsError) in
            try await self.translating { () async throws(SystemCallError) in
                try await self.seams.disk.run { () throws(SystemCallError) in
                    try files.replaceLink(link, target: build)
                    try files.syncDirectory(link.parentPath)
                }
            }
        }
        guard isLinked else { return }
        app.gate = .open
        app.ledger = apps[appID]?.ledger ?? app.ledger
        apps[appID] = app
        journal(.gateOpened, opening.reason, app: appID, opening.rawValue)
        let changes = [.saveApp(app), makePlan(for: appID)]
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit(changes) }
        guard isSaved else { return }
        queue.invalidate()
        pumpSoon()
        launch { service in await service.deliverPending(of: appID) }
    }
}

extension InstallLife.GateOpening {
    fileprivate var reason: Reason {
        switch self {
        case .complete, .nothingEssential, .notGated: .none
        case .manifestFailed: .manifest
        case .extensionFailed: .crash
        case .patience: .timeout
        }
    }
}
