// Start and end of the service: every open intent is completed from what is on disk, never guessed.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    /// A journal row from outside the service.
    package func note(_ event: JournalEvent, _ reason: Reason, _ detail: String) { journal(event, reason, detail) }

    /// Brings the device back to where it was and begins to work. Call once, before any client.
    package func start() async throws(AssetsError) {
        let lastTime: Duration?
        do throws(StoreError) {
            lastTime = try await seams.store.lastJournalTime()
            let stored = try await seams.store.settings()
            settings = DeviceSettings(stored: stored)
            takeProxies()
            await takeBackgroundRate()
            deviceName = stored["device"] ?? seams.random.uuid()
            if stored["device"] == nil {
                _ = try await seams.store.apply([.setSetting(name: "device", value: deviceName)])
            }
            for app in try await seams.store.apps() { apps[app.id] = app }
            plans = try await seams.store.plans()
            runtimes = try await seams.store.runtimes()
            for var run in try await seams.store.openExtensionRuns() {
                (run.reason, run.detail) = (.restart, "the service ended before it did")
                saveSoon(.saveExtensionRun(run))
            }
            for record in try await seams.store.installations() {
                var installation = Installation(record: record)
                if record.phase.isFinal {
                    _ = installation.life.handle(.resume(record.phase, isGateOpen: true), at: .zero)
                    if record.phase == .launchable { installation.progress.finished() }
                }
                installations[record.id] = installation
            }
        } catch { throw AssetsError(error) }
        journal(.serviceStarted, .none)
        await lookAtCalendar(witness: lastTime)
        await seams.extensions.report { [weak self] app, news in self?.perform { $0.extensionNews(news, of: app) } }
        // No app is connected yet: what apps held in the foreground goes on in the background.
        try await commit([.demoteForegroundDownloads])
        try await makeFolders()
        let intents: [IntentRecord]
        do throws(StoreError) { intents = try await seams.store.intents() } catch { throw AssetsError(error) }
        try await findContainers(leaving: Set(intents.filter { $0.kind == "remove" }.flatMap(\.paths)))
        try await closeIntents(intents)
        await makeMissingContainers()
        await mendLinks()
        let late = await completeFinishes()
        await removeStrays()
        try await commit([])
        followNetwork()
        // Nobody has looked for room since.
        await retryWaiting(for: [.space])
        for id in installations.keys.sorted() { resume(id) }
        for app in installedApps() { await deliverPending(of: app.id) }
        try await resumeEvents()
        try await resumePlans()
        for (record, intent) in late { finishLater(record, intent) }
        pumpSoon()
    }

    /// Stops taking work, lets transfers and extensions go, and writes what is pending.
    package func stop() async {
        guard !isStopping else { return }
        isStopping = true
        journal(.serviceStopped, .none)
        seams.network.end()
        await endAllExtensions()
        await seams.transfers.stop()
        _ = try? await commit([])
        try? await seams.store.checkpoint(.truncate)
    }

    private func makeFolders() async throws(AssetsError) {
        let files = seams.files
        try await translating { () async throws(SystemCallError) in
            try await self.seams.disk.run { () throws(SystemCallError) in
                for folder in ["Applications", "Transfers"] + ContainerFolders.Kind.allCases.map(\.rawValue) {
                    try files.makeDurableDirectory(folder)
                }
                try files.remove("Applications/.staging")
            }
        }
    }

    private func closeIntents(_ intents: [IntentRecord]) async throws(AssetsError) {
        for intent in intents {
            switch intent.kind {
            case "remove", "delete":
                // An app that was installed again since has its folder now, and containers of other names.
                let taken = intent.kind == "remove" ? Set(apps.keys.map { "Applications/\($0)" }) : []
                guard await removeFolders(intent.paths.filter { !taken.contains($0) }) else { continue }
                journal(.recovered, .restart, "\(intent.id): removal completed")
                try await commit([.closeIntent(id: intent.id)])
            case "abandon": try await completeAbandon(intent)
            default: journal(.warning, .restart, "\(intent.id): nothing is known of the intent \(intent.kind)")
            }
        }
    }

    /// Goes on removing what a failed or cancelled installation left.
    private func completeAbandon(_ intent: IntentRecord) async throws(AssetsError) {
        var changes: [StoreChange] = [.closeIntent(id: intent.id)]
        if var record = installations[intent.id]?.record {
            await removeEverything(record)
            record.phase = InstallPhase(rawValue: intent.payload) ?? .cancelled
            journal(.recovered, .restart, app: record.app, "installation \(record.phase); nothing of it is left")
            installations[intent.id]?.record = record
            _ = installations[intent.id]?.life.handle(.resume(record.phase, isGateOpen: false), at: .zero)
            changes.append(.saveInstallation(record))
        }
        try await commit(changes)
    }

    /// `current` exists exactly where the gate is open.
    private func mendLinks() async {
        let files = seams.files
        for app in installedApps() {
            let link = "Applications/\(app.id)/current"
            let isOpen = app.gate == .open
            do throws(SystemCallError) {
                try await seams.disk.run { () throws(SystemCallError) in
                    if isOpen { try files.replaceLink(link, target: app.buildFolder) } else { try files.remove(link) }
                }
            } catch { journal(.warning, .volume, app: app.id, "\(link): \(error)") }
        }
    }

    /// Answers the finishes that the disk does not take yet: nobody is kept from being served by them.
    private func completeFinishes() async -> [(DownloadRecord, FinishIntent)] {
        var late: [(DownloadRecord, FinishIntent)] = []
        var last: Int64 = 0
        while let records = try? await seams.store.finishing(after: last, limit: Store.pageMax),
            let end = records.last?.sequence
        {
            last = end
            for record in records {
                guard case .finishing(let intent) = record.state else { continue }
                if await !completeFinish(record, intent) { late.append((record, intent)) }
            }
        }
        return late
    }

    /// False when it is to be tried again.
    private func completeFinish(_ record: DownloadRecord, _ intent: FinishIntent) async -> Bool {
        let isThere: Bool
        do throws(SystemCallError) { isThere = try await isFileThere(of: record, intent) } catch {
            // Nobody knows: the row stays as it is.
            journal(
                .warning, .volume, app: record.app, download: record.id,
                "\(intent.target): \(error); looked at again when the service starts the next time")
            return true
        }
        guard isThere else {
            await fetchAgain(record, intent)
            return true
        }
        journal(.recovered, .restart, app: record.app, download: record.id, "the finish goes on")
        return await resume(record, intent)
    }

    /// Whether the file of a finishing row is in its place or on its way there.
    private func isFileThere(of record: DownloadRecord, _ intent: FinishIntent) async throws(SystemCallError) -> Bool {
        let files = seams.files
        let partial = record.partialPath
        return try await seams.disk.run { () throws(SystemCallError) in
            let present = [try files.status(intent.target), try files.status(partial)]
            return present.contains { $0?.inode == intent.inode }
        }
    }

    private func fetchAgain(_ record: DownloadRecord, _ intent: FinishIntent) async {
        journal(
            .warning, .restart, app: record.app, download: record.id,
            "neither partial nor finished file is there; fetched again")
        _ = try? await commit([
            .setDownloadState(id: record.id, .waiting), .setDownloadResume(id: record.id, nil, received: 0),
        ])
        // Its folder may be there without it.
        await leave(intent.target)
    }

    /// Files and folders that no row knows of.
    private func removeStrays() async {
        let files = seams.files
        let names = (try? await seams.disk.run { () throws(SystemCallError) in try files.list("Transfers") }) ?? []
        for name in names {
            let id = name.prefix { $0 != "." }
            let record: DownloadRecord?
            do throws(StoreError) { record = try await seams.store.download(id: String(id)) } catch { continue }
            // Of a download that has ended only a fetched archive is of use.
            if let record, record.isLive || !name.hasSuffix(".partial") { continue }
            try? await seams.disk.run { () throws(SystemCallError) in try files.remove("Transfers/\(name)") }
        }
        let folders = (try? await seams.disk.run { () throws(SystemCallError) in try files.list("Applications") }) ?? []
        for folder in folders {
            guard let app = apps[folder] else {
                await removeFolders(["Applications/\(folder)"])
                continue
            }
            let builds =
                (try? await seams.disk.run { () throws(SystemCallError) in try files.list("Applications/\(folder)") })
                ?? []
            for build in builds where build != app.buildFolder && build != "current" {
                await removeFolders(["Applications/\(folder)/\(build)"])
            }
        }
        let groups = Set(installedApps().flatMap(\.description.groups))
        for group in groups.sorted() {
            await removeHalfWrittenTag(of: group)
            await removeEmptyVendedFolders(of: group)
        }
    }

    /// Folders that were kept for a file which was on its way there when the service ended.
    private func removeEmptyVendedFolders(of group: String) async {
        let files = seams.files
        let parent = "\(container(.group, of: group))/Library/Caches/\(Self.vendedFolderName)"
        try? await seams.disk.run { () throws(SystemCallError) in
            for name in try files.list(parent) { _ = try files.removeEmptyDirectory("\(parent)/\(name)") }
        }
    }

    /// What was left of the tag of a group's caches when the machine stopped. The folder is the app's: only a file that
    /// can be nothing else is removed.
    private func removeHalfWrittenTag(of group: String) async {
        let files = seams.files
        let caches = container(.group, of: group) + "/Library/Caches"
        try? await seams.disk.run { () throws(SystemCallError) in
            for name in try files.list(caches) where DeviceTree.isTemporary(name) {
                let status = try files.status("\(caches)/\(name)")
                guard let status, status.kind == .file, status.size <= cacheDirectoryTag.utf8.count else { continue }
                try files.remove("\(caches)/\(name)")
            }
        }
    }

    private func resume(_ id: String) {
        guard let record = installations[id]?.record else { return }
        if record.phase.isFinal { return forgetLater(id) }
        journal(.recovered, .restart, app: record.app, "installation goes on at \(record.phase)")
        if let app = apps[record.app] {
            installations[id]?.progress.unpacked(
                allowance: app.description.restrictions.essentialDownloadAllowance ?? 0)
        }
        installationEvent(.resume(record.phase, isGateOpen: apps[record.app]?.gate == .open), of: id)
    }
}

extension IntentRecord {
    /// What is to be removed.
    fileprivate var paths: [String] { payload.split(separator: "\n").map(String.init) }
}
