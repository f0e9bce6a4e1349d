// The durable finish: intent row, rename, directories synced, closing row, message.
internal import AssetsModel
internal import AssetsOS
internal import AssetsStore

/// Extended attribute on every file the service hands out: the system may remove it when space runs low.
let purgeableAttribute = "user.backgroundassets.purgeable"

extension AssetsService {
    /// All bytes are in the partial file, checked and synced.
    func finish(_ record: DownloadRecord, length: Int64, inode: UInt64) async {
        let intent = FinishIntent(target: finishTarget(of: record), inode: inode, length: length)
        let changes = [.setDownloadState(id: record.id, .finishing(intent))] + noteSize(of: record, length)
        guard await save(changes, of: record.id) else { return }
        await complete(record, intent)
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
    func complete(_ record: DownloadRecord, _ intent: FinishIntent, afterRestart: Bool = false) async {
        var record = record
        guard await move(record, intent, afterRestart) else { return await discard(intent) }
        journal(
            .downloadFinished, .none, app: record.app, download: record.id,
            "\(record.request.identifier), \(intent.length) bytes")
        let changes: [StoreChange] = [.setDownloadState(id: record.id, .finished(intent))]
        guard await save(changes, of: record.id, isRunning: !afterRestart) else { return await discard(intent) }
        record.state = .finished(intent)
        foregroundHolders[record.id] = nil
        noteEssentialEnded(record, received: intent.length)
        ended(record)
    }

    /// Tries until the disk takes it; false when nobody wants the file any more.
    private func move(_ record: DownloadRecord, _ intent: FinishIntent, _ afterRestart: Bool) async -> Bool {
        let partial = record.partialPath
        let files = seams.files
        let uniqueIdentifier = record.id
        // The extension reads it, and nobody writes it.
        let isManifest = record.request.kind == .manifest
        var tries = 0
        while !isStopping {
            do throws(SystemCallError) {
                try await seams.disk.run { () throws(SystemCallError) in
                    try moveIntoPlace(files, partial: partial, intent: intent, mark: uniqueIdentifier)
                    if isManifest { try files.makeReadOnly(intent.target) }
                }
                return isWanted(record.id, isRunning: !afterRestart)
            } catch {
                journal(.warning, .volume, app: record.app, download: record.id, "\(intent.target): \(error)")
            }
            tries += 1
            await seams.loop.pause(for: PolicyNumbers.storagePause(afterTries: tries))
            guard isWanted(record.id, isRunning: !afterRestart) else { return false }
        }
        return false
    }

    private func discard(_ intent: FinishIntent) async {
        let files = seams.files
        let place = Self.ownPlace(intent.target)
        try? await seams.disk.run { () throws(SystemCallError) in try files.remove(place) }
    }

    /// What goes with a finished file: the folder of its own that it lies in. Archives have none: they lie beside the
    /// partial files of other downloads.
    static func ownPlace(_ target: String) -> String {
        target.parentPath == "Transfers" ? target : target.parentPath
    }

    /// Where a finished file goes, below the device directory.
    func finishTarget(of record: DownloadRecord) -> String {
        switch record.request.kind {
        case .url:
            "Containers/Group/\(record.request.group)/Library/Caches/.BackgroundAssets/\(record.id)/"
                + record.request.fileName
        case .manifest:
            "Containers/Extension/\(apps[record.app]?.description.extensionIdentifier ?? record.app)/Manifests/"
                + "\(record.id)/manifest"
        case .archive: "Transfers/\(record.id).archive"
        }
    }
}

/// Renames the partial file over and syncs every directory whose names changed. Does nothing that was done already.
func moveIntoPlace(
    _ files: any FileTree, partial: String, intent: FinishIntent, mark: String
) throws(SystemCallError) {
    let folder = intent.target.parentPath
    let source = partial.parentPath
    let isThere = try files.status(intent.target)?.inode == intent.inode
    if folder != source {
        // First the folder's own name: a file whose move is durable must not be in a folder that is not. Also when the
        // file is there: who moved it may have been killed before it synced.
        try files.makeDirectory(folder)
        try files.syncDirectory(folder.parentPath)
    }
    if !isThere {
        do throws(SystemCallError) {
            try files.setAttribute(partial, name: purgeableAttribute, value: mark)
        } catch {
            // Without extended attributes a file cannot be marked; it is kept all the same.
        }
        try files.rename(partial, to: intent.target, exclusively: false)
    }
    try files.syncDirectory(folder)
    if folder != source { try files.syncDirectory(source) }
}

extension DownloadRequest {
    /// The last part of the URL's path where it can be a file name, else "asset".
    var fileName: String {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let mark = path.utf8.firstRange(of: "://".utf8),
            let slash = path[mark.upperBound...].lastIndex(of: "/")
        else { return "asset" }
        let name = String(path[path.index(after: slash)...])
        let isUsable =
            !name.isEmpty && name.utf8.count <= 200 && !name.hasPrefix(".")
            && name.utf8.allSatisfy { $0 > 32 && $0 != 127 && $0 != UInt8(ascii: "/") }
        return isUsable ? name : "asset"
    }
}

extension String {
    /// The path without its last part.
    var parentPath: String {
        guard let slash = lastIndex(of: "/") else { return "" }
        return String(self[..<slash])
    }
}
