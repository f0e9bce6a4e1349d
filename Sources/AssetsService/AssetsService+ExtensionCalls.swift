// One call of an entry point, from the question whether the extension may run to its answer or death.
internal import AssetsModel
internal import AssetsOS

extension AssetsService {
    /// Calls an entry point when the app's extension may run: launches it, or lets it go on.
    func call(_ entry: EntryPoint, of app: AppRecord, limit: Duration?) async -> EntryPointOutcome {
        if let obstacle = await obstacle(to: app) {
            journal(.extensionRefused, obstacle.reason, app: app.id, download: entry.download, obstacle.detail)
            return .died(obstacle.reason, obstacle.detail)
        }
        let started = seams.loop.now
        journal(.extensionCalled, .none, app: app.id, download: entry.download, entry.name)
        _ = try? await commit([])
        // Whoever is not called any more, or was interrupted, is called after the next start.
        guard !isStopping else { return .died(.restart, "the service ends") }
        if let end = await awaken(app, for: entry) { return end.outcome }
        let timer = limit.map { limit in
            seams.loop.schedule(after: limit) {
                self.assumeIsolated { $0.extensionEvent(.misbehaved(.timeout), of: app.id) }
            }
        }
        let outcome = await seams.extensions.call(entry, of: app.id)
        if let timer { seams.loop.cancel(timer) }
        if case .died(let reason, let detail) = outcome {
            extensionProcesses[app.id]?.lastWords = detail
            extensionEvent(.misbehaved(reason), of: app.id)
            return await extensionEnd(of: app.id).outcome
        }
        extensionProcesses[app.id]?.isCalling = false
        extensionEvent(.answered, of: app.id)
        measureStorage(of: app.id)
        note(outcome, of: entry, app.id, after: (seams.loop.now - started).shown)
        return outcome
    }

    private func note(_ outcome: EntryPointOutcome, of entry: EntryPoint, _ app: String, after took: String) {
        guard !isStopping else { return }
        switch outcome {
        case .downloads(let downloads):
            journal(.extensionAnswered, .none, app: app, "\(downloads.count) downloads after \(took)")
        case .handled, .answered:
            journal(.extensionAnswered, .none, app: app, download: entry.download, "after \(took)")
        case .notImplemented: journal(.extensionAnswered, .notImplemented, app: app, download: entry.download)
        case .died: break
        }
    }

    /// Nil when the entry point can be called now.
    private func awaken(_ app: AppRecord, for entry: EntryPoint) async -> ExtensionEnd? {
        var process = extensionProcesses[app.id] ?? ExtensionProcessState()
        process.target = target(of: app, entry.urgency)
        process.entry = entry
        extensionProcesses[app.id] = process
        // An ordinary user cannot raise a priority again: what is urgent takes another process.
        if process.urgency?.serves(entry.urgency) == false { extensionEvent(.unwanted, of: app.id) }
        return await withCheckedContinuation { continuation in
            extensionProcesses[app.id]?.caller = continuation
            extensionEvent(.wanted, of: app.id)
        }
    }

    private func target(of app: AppRecord, _ urgency: ExtensionUrgency) -> ExtensionTarget {
        let executable = app.bundlePath + "/" + app.description.extensionExecutable
        return ExtensionTarget(
            app: app.id, container: container(.appExtension, of: app.description.extensionIdentifier),
            executable: executable, folder: executable.parentPath,
            groups: groupContainers(of: app, sharedOnly: true), urgency: urgency)
    }
}
