// The durable finish: intent row, rename, directories synced, closing row, message.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    /// All bytes are in the partial file, checked and synced.
    func finish(_ record: DownloadRecord, length: Int64, inode: UInt64, digest: ContentDigest?) async {
        guard await isWanted(record.id) else { return }
        let intent = FinishIntent(target: chooseTarget(of: record), inode: inode, length: length, digest: digest)
        running[record.id]?.target = intent.target
        let changes = [.setDownloadState(id: record.id, .finishing(intent))] + noteSize(of: record, length)
        let isSaved = await save(changes, of: record.id, waiting: finishDelay)
        if await isOver(isSaved, intent) { return }
        await complete(record, intent)
    }

    /// All bytes of a download have come.
    func noteGathered() {
        let now = seams.loop.now
        let isBurst = lastGathered.map { now - $0 < PolicyNumbers.gatheringTime } ?? false
        finishDelay = isBurst ? PolicyNumbers.gatheringTime : .zero
        lastGathered = now
    }

    /// A non-essential download of another size than announced is taken all the same, with a warning; what it has more
    /// counts against the allowance.
    private func noteSize(of record: DownloadRecord, _ length: Int64) -> [StoreChange] {
        let request = record.request
        guard request.kind == .url, !request.isEssential, length != request.size else { return [] }
        if request.size > 0 {
            journal(
                .warning, .size, app: record.app, download: record.id,
                "\(request.identifier): \(length) bytes instead of the \(request.size) announced")
        }
        guard var app = apps[record.app], app.launchedAt == nil, length > request.size else { return [] }
        var admission = Admission(app: app, allowsLoopbackHTTP: settings.isDeveloperModeOn)
        admission.chargeUnannounced(bytes: length - request.size)
        app.ledger = admission.ledger
        apps[record.app] = app
        return [.saveApp(app)]
    }

    /// Moves the file of a finishing row to its place and closes the row.
    ///
    /// - Parameter mayBeMoved: An earlier try, or an earlier process, may have moved it already.
    func complete(_ record: DownloadRecord, _ intent: FinishIntent, mayBeMoved: Bool = false) async {
        if await isOver(move(record, intent, mayBeMoved), intent) { return }
        await close(record, intent)
    }

    /// Goes on with the finish of an earlier process, before there are clients; false when the disk does not take the file.
    /// It counts among the transfers that have just ended until then.
    func resume(_ record: DownloadRecord, _ intent: FinishIntent) async -> Bool {
        let transfer = RunningTransfer(record, at: seams.loop.now)
        transfer.isEnding = true
        running[record.id] = transfer
        guard let outcome = await tryMove(record, intent, mayBeDone: true) else { return false }
        if await !isOver(outcome, intent) { await close(record, intent) }
        running[record.id] = nil
        return true
    }

    /// Tries again what the disk did not take when the service started.
    func finishLater(_ record: DownloadRecord, _ intent: FinishIntent) {
        guard let transfer = running[record.id] else { return }
        settle(transfer) { service in
            await service.seams.loop.pause(for: PolicyNumbers.storagePauseMin)
            await service.complete(record, intent, mayBeMoved: true)
            service.release(record.id)
        }
    }

    /// Writes the row of a file that is in its place, and tells of it.
    private func close(_ record: DownloadRecord, _ intent: FinishIntent) async {
        var record = record
        journal(
            .downloadFinished, .none, app: record.app, download: record.id,
            "\(record.request.identifier), \(intent.length) bytes")
        let changes: [StoreChange] = [.setDownloadState(id: record.id, .finished(intent))]
        let isSaved = await save(changes, of: record.id, waiting: finishDelay)
        if await isOver(isSaved, intent) { return }
        record.state = .finished(intent)
        foregroundHolders[record.id] = nil
        noteEssentialEnded(record, received: intent.length)
        ended(record)
    }

    /// Whether a finish does not go on after a step; a file that nobody wants any more is removed then.
    private func isOver(_ outcome: StepOutcome, _ intent: FinishIntent) async -> Bool {
        if outcome == .unwanted { await discard(intent) }
        return outcome != .done
    }

    /// Tries until the disk takes it.
    private func move(_ record: DownloadRecord, _ intent: FinishIntent, _ mayBeMoved: Bool) async -> StepOutcome {
        var tries = 0
        while !isStopping {
            if let outcome = await tryMove(record, intent, mayBeDone: mayBeMoved || tries > 0) { return outcome }
            tries += 1
            await seams.loop.pause(for: PolicyNumbers.storagePause(afterTries: tries))
            guard await isWanted(record.id) else { return .unwanted }
        }
        return .stopping
    }

    /// Moves a file to its place; nil when the disk does not take it.
    private func tryMove(_ record: DownloadRecord, _ intent: FinishIntent, mayBeDone: Bool) async -> StepOutcome? {
        let move = FileMove(
            partial: record.partialPath, intent: intent,
            // The extension reads it, and nobody writes it.
            isReadOnly: record.request.kind == .manifest, mayBeDone: mayBeDone)
        let failure = await moves.outcome(of: move, in: self, waiting: finishDelay)
        guard await isWanted(record.id) else { return .unwanted }
        // The closing row is not written any more: nothing is to be said of it either.
        guard let failure else { return isStopping ? .stopping : .done }
        journal(.warning, .volume, app: record.app, download: record.id, "\(intent.target): \(failure)")
        return nil
    }

    private func discard(_ intent: FinishIntent) async {
        let files = seams.files
        let place = Self.ownPlace(intent.target)
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(place) }
        await leave(intent.target)
    }

    // MARK: Places

    /// What goes with a finished file: a manifest has a folder of its own, a vended file shares its, and archives lie
    /// beside the partial files of other downloads.
    static func ownPlace(_ target: String) -> String {
        target.hasPrefix(ContainerFolders.Kind.appExtension.rawValue + "/") ? target.parentPath : target
    }

    /// Where a finished file goes, below the device directory.
    private func chooseTarget(of record: DownloadRecord) -> String {
        switch record.request.kind {
        case .url:
            let name = record.request.fileName
            let parent = "\(container(.group, of: record.request.group))/Library/Caches/\(Self.vendedFolderName)"
            return vendedFolders.folder(for: name, below: parent, newName: seams.random.uuid) + "/" + name
        case .manifest:
            let identifier = apps[record.app]?.description.extensionIdentifier ?? record.app
            return "\(container(.appExtension, of: identifier))/Manifests/\(record.id)/manifest"
        case .archive: return "Transfers/\(record.id).archive"
        }
    }

    /// In it are the folders of finished files that wait for their receivers.
    static let vendedFolderName = ".BackgroundAssets"

    /// The folder of a vended file; nil for other paths.
    static func vendedFolder(of path: String) -> String? {
        let folder = path.parentPath
        return folder.parentPath.hasSuffix("/" + vendedFolderName) ? folder : nil
    }

    /// A file is not on its way to its place any more, and does not wait there.
    func leave(_ target: String) async {
        guard let folder = Self.vendedFolder(of: target) else { return }
        vendedFolders.end(folder)
        do throws(SystemCallError) { try await tidy(folder) } catch {
            journal(.warning, .volume, "\(folder) could not be removed: \(error)")
        }
    }

    /// Removes a folder that nobody needs and nothing is in.
    func tidy(_ folder: String) async throws(SystemCallError) {
        guard !vendedFolders.isOpen(folder) else { return }
        let files = seams.files
        try await seams.disk.run { () throws(SystemCallError) in
            if try files.removeEmptyDirectory(folder), try files.status(folder.parentPath) != nil {
                try files.syncDirectory(folder.parentPath)
            }
        }
    }
}

extension DownloadRequest {
    /// The last part of the URL's path where it can be a file name, else "asset".
    var fileName: String {
        let path = url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard let colon = path.firstIndex(of: UInt8(ascii: ":")), path[colon...].starts(with: "://".utf8),
            let slash = path[colon...].dropFirst(3).lastIndex(of: UInt8(ascii: "/"))
        else { return "asset" }
        let name = String(Substring(path[path.index(after: slash)...]))
        let isUsable =
            !name.isEmpty && name.utf8.count <= 200 && !name.hasPrefix(".")
            && name.utf8.allSatisfy { $0 > 32 && $0 != 127 && $0 != UInt8(ascii: "/") }
        return isUsable ? name : "asset"
    }
}

extension String {
    /// The path without its last part.
    var parentPath: String {
        guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return String(self[..<slash])
    }

    /// The last part of the path.
    var lastPathPart: String {
        guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return self }
        return String(self[utf8.index(after: slash)...])
    }
}
