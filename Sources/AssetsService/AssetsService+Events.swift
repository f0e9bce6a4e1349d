// Content requests of installed apps: by the plan, or simulated by a developer. First comes the manifest, then the extension.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    // MARK: What clients ask for

    /// Has the extension asked as on that occasion, at once and whether or not its app was ever launched.
    package func simulate(_ request: ContentRequest, of id: String) async throws(AssetsError) {
        guard settings.isDeveloperModeOn else {
            throw AssetsError(
                .developerModeOff, "this device takes simulated events in Developer Mode only",
                remedy: "switch it on with: backgroundassets settings developer-mode on")
        }
        let app = try appToSimulate(id)
        guard app.gate == .open, runningInstallation(of: id) == nil else {
            throw AssetsError(
                .busy, "\(app.description.name) is still being installed",
                remedy: "wait until it can be launched; follow it with: backgroundassets journal \(id)")
        }
        if let event = events[id] { try await giveWay(event, to: request) }
        try await beginEvent(request, of: id, .simulated)
        resetRuntime(of: id)
    }

    private func appToSimulate(_ id: String) throws(AssetsError) -> AppRecord {
        if let app = apps[id] { return app }
        if let owner = installedApps().first(where: { $0.description.extensionIdentifier == id }) {
            throw AssetsError(
                .notInstalled, "\(id) is an extension, not an app", remedy: "name its app: \(owner.id)")
        }
        throw AssetsError(
            .notInstalled, "no app \(id.prefix(PolicyNumbers.identifierMax)) is installed on this device",
            remedy: "list the apps with: backgroundassets apps")
    }

    /// A planned check whose manifest is still on its way stops for what somebody wants to see now.
    private func giveWay(_ event: ContentEvent, to request: ContentRequest) async throws(AssetsError) {
        let manifest = try await downloadRecord(id: event.manifest)
        guard event.origin == .planned, let manifest, case .waiting = manifest.state, events[event.app] == event else {
            throw AssetsError(
                .busy, "another event of \(event.app) is being handled, and its extension takes one at a time",
                remedy: "follow it with: backgroundassets journal \(event.app)")
        }
        journal(.eventEnded, .requested, app: event.app, "gives way to a simulated \(request) request")
        events[event.app] = nil
        try await remove(manifest)
        try await commit([.closeEvent(app: event.app)])
    }

    /// True while an extension is asked on such an occasion, or its manifest is on the way.
    package var hasEvents: Bool { !events.isEmpty }

    // MARK: The course of an event

    /// Writes the event down and queues its manifest; what follows comes from that download's end.
    func beginEvent(
        _ request: ContentRequest, of id: String, _ origin: ContentEvent.Origin
    ) async throws(AssetsError) {
        let app = try installedApp(id)
        var manifest = manifestDownload(for: app, origin == .planned ? .background : .essential)
        let event = ContentEvent(app: id, request: request, origin: origin, manifest: manifest.id)
        // From here on no other one begins.
        events[id] = event
        journal(.eventBegan, origin == .planned ? .interval : .requested, app: id, "\(request), \(origin)")
        do throws(AssetsError) {
            manifest.queued(as: try await commit([.openEvent(event), .insertDownload(manifest)]).first ?? 0)
        } catch {
            if events[id] == event { events[id] = nil }
            throw error
        }
        enqueue(manifest)
    }

    /// After a start: events go on where they were. Finishes of their manifests were completed before.
    func resumeEvents() async throws(AssetsError) {
        do throws(StoreError) { events = try await seams.store.events() } catch { throw AssetsError(error) }
        for id in events.keys.sorted() {
            guard let event = events[id] else { continue }
            journal(.recovered, .restart, app: id, "the \(event.request) request goes on")
            guard let manifest = try? await downloadRecord(id: event.manifest) else {
                await endEvent(event, .manifest, "its manifest is gone")
                continue
            }
            if !manifest.isLive { eventManifestEnded(event, manifest) }
        }
    }

    /// The event that a manifest was fetched for.
    func event(of record: DownloadRecord) -> ContentEvent? {
        guard let event = events[record.app], event.manifest == record.id else { return nil }
        return event
    }

    func eventManifestEnded(_ event: ContentEvent, _ record: DownloadRecord) {
        switch record.state {
        case .finished(let intent):
            journal(.manifestFetched, .none, app: event.app, download: record.id, "\(intent.length) bytes")
            callExtension(of: event.app, .contentRequest(event.request, manifest: record.id))
        case .failed(let failure):
            launch { service in
                await service.endEvent(event, .manifest, failure.reason)
                service.deliver(record)
            }
        case .waiting, .finishing: preconditionFailure("a manifest ended in state \(record.state)")
        }
    }

    /// Ends an event that has come to nothing.
    func endEvent(_ event: ContentEvent, _ reason: Reason, _ detail: String) async {
        let changes = closing(event, reason, detail)
        let isSaved = await retryingStore { () async throws(AssetsError) in try await self.commit(changes) }
        if isSaved { ended(event) }
    }

    /// What is written when an event is over.
    func closing(_ event: ContentEvent, _ reason: Reason, _ detail: String) -> [StoreChange] {
        journal(.eventEnded, reason, app: event.app, "\(event.request), \(event.origin): \(detail)")
        return [.closeEvent(app: event.app)] + [planAfterCheck(of: event.app)].compactMap(\.self)
    }

    func ended(_ event: ContentEvent) {
        if events[event.app] == event { events[event.app] = nil }
        armPlanTimer()
        activityChanged?()
    }
}
