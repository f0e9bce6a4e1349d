// org.backgroundassets.Device: what the device's user asks for.
internal import AssetsModel
internal import AssetsOS
internal import AssetsSandbox
internal import AssetsStore
internal import AssetsWire
internal import Glibc

func serveDevice(_ dispatcher: inout WireDispatcher<AssetsService, Peer>, version: String) {
    dispatcher.on(DeviceInterface.Describe.self) { service, peer, header, _ in
        let reply = DeviceInterface.Describe.Reply(
            device: service.deviceName, root: service.seams.files.root, version: version, process: Int64(getpid()),
            developerMode: service.isDeveloperModeOn,
            settings: service.shownSettings.map { DeviceInterface.Setting(name: $0.name, value: $0.value) })
        peer.reply(DeviceInterface.Describe.self, reply, to: header)
    }
    dispatcher.on(DeviceInterface.SetSetting.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.SetSetting.self, header, to: peer) { service throws(AssetsError) in
            try await service.set(parameters.name, to: parameters.value)
            return Nothing()
        }
    }
    dispatcher.on(DeviceInterface.Sandbox.self) { service, peer, header, _ in
        let layers = service.seams.extensions.sandboxReports.map { report in
            DeviceInterface.SandboxLayer(
                name: report.layer.name, active: report.isActive, detail: report.detail, weaker: report.weaknesses)
        }
        peer.reply(DeviceInterface.Sandbox.self, .init(layers: layers), to: header)
    }
    serveInstallation(&dispatcher)
    serveApps(&dispatcher)
    serveLists(&dispatcher)
    dispatcher.on(DeviceInterface.Simulate.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.Simulate.self, header, to: peer) { service throws(AssetsError) in
            guard let request = ContentRequest(event: parameters.event) else {
                throw AssetsError(.usage, "there is no event '\(parameters.event.prefix(40))'")
            }
            try await service.simulate(request, of: parameters.app)
            return Nothing()
        }
    }
    serveExtension(&dispatcher)
    serveWhy(&dispatcher)
    dispatcher.on(DeviceInterface.SetDeveloperMode.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.SetDeveloperMode.self, header, to: peer) { service throws(AssetsError) in
            try await service.setDeveloperMode(parameters.on)
            return Nothing()
        }
    }
}

extension ContentRequest {
    /// As the wire names it. No tool simulates a change of language.
    fileprivate init?(event: String) {
        switch event {
        case "install": self = .install
        case "update": self = .update
        case "periodic": self = .periodic
        default: return nil
        }
    }
}

private func serveInstallation(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.onStream(DeviceInterface.Install.self) { service, peer, header, parameters in
        service.launch { service in
            do throws(AssetsError) {
                guard let kind = InstallSource(rawValue: parameters.sourceKind) else {
                    throw AssetsError(.usage, "source_kind \(parameters.sourceKind) is neither store nor sideload")
                }
                let id = try await service.install(source: parameters.source, kind: kind)
                try service.tell(peer, of: id, header, DeviceInterface.Install.self) { .init(update: $0) }
            } catch { peer.refuse(header, error) }
        }
    }
    dispatcher.onStream(DeviceInterface.FollowInstall.self) { service, peer, header, parameters in
        do throws(AssetsError) {
            try service.tell(peer, of: parameters.install, header, DeviceInterface.FollowInstall.self) {
                .init(update: $0)
            }
        } catch { peer.refuse(header, error) }
    }
    dispatcher.on(DeviceInterface.CancelInstall.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.CancelInstall.self, header, to: peer) { service throws(AssetsError) in
            try await service.cancelInstall(parameters.install)
            return Nothing()
        }
    }
}

extension AssetsService {
    /// Sends every change of an installation until it has ended.
    fileprivate func tell<M: WireMethod>(
        _ peer: Peer, of install: String, _ header: CallHeader, _ method: M.Type,
        _ wrap: @escaping @Sendable (DeviceInterface.InstallUpdate) -> M.Reply
    ) throws(AssetsError) {
        let number = try follow(install: install) { status in
            guard peer.isOpen, !(peer.connection?.isCongested ?? true && !status.phase.isFinal) else { return }
            let update = DeviceInterface.InstallUpdate(status)
            if status.phase.isFinal {
                peer.reply(method, wrap(update), to: header)
            } else {
                peer.stream(method, wrap(update))
            }
        }
        peer.whenEnded.append { $0.unfollow(install: install, number) }
    }
}

private func serveApps(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.on(DeviceInterface.Launch.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.Launch.self, header, to: peer) { service throws(AssetsError) in
            let plan = try await service.launchPlan(for: parameters.app)
            return .init(executable: plan.executable, environment: plan.environment)
        }
    }
    dispatcher.on(DeviceInterface.Uninstall.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.Uninstall.self, header, to: peer) { service throws(AssetsError) in
            try await service.uninstall(parameters.app)
            return Nothing()
        }
    }
    dispatcher.onStream(DeviceInterface.Apps.self) { service, peer, header, _ in
        service.answerPages(DeviceInterface.Apps.self, header, to: peer, wrap: { .init(apps: $0) }) {
            service, last throws(AssetsError) in
            let later = service.installedApps().filter { last == nil || $0.id > (last?.bundleIdentifier ?? "") }
            return later.prefix(WireLimit.pageMax).map { service.wireApp($0) }
        }
    }
}

private func serveExtension(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.on(DeviceInterface.Extension.self) { service, peer, header, parameters in
        service.answer(DeviceInterface.Extension.self, header, to: peer) { service throws(AssetsError) in
            let ledger = try await service.extensionLedger(of: parameters.app)
            return .init(extension: .init(ledger), runs: ledger.runs.map(DeviceInterface.ExtensionRun.init))
        }
    }
}

private func serveWhy(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.onStream(DeviceInterface.Why.self) { service, peer, header, parameters in
        service.launch { service in await service.sendStandings(parameters, header, to: peer) }
    }
}

extension AssetsService {
    /// Sends how an app stands, then its downloads that something holds; or how one of its downloads does.
    fileprivate func sendStandings(
        _ parameters: DeviceInterface.Why.Parameters, _ header: CallHeader, to peer: Peer
    ) async {
        let app = parameters.app
        let wrap = { (page: [Standing]) in DeviceInterface.Why.Reply(standings: page.map(DeviceInterface.Standing.init))
        }
        do throws(AssetsError) {
            guard parameters.download.isEmpty else {
                let found = try await standings(of: app, download: parameters.download)
                return peer.reply(DeviceInterface.Why.self, wrap(found), to: header)
            }
            var page = try await standings(of: app)
            var last: Int64? = 0
            while let sequence = last, peer.isOpen {
                let (held, next) = try await heldDownloads(of: app, after: sequence, limit: WireLimit.pageMax)
                last = next
                guard !held.isEmpty else { continue }
                peer.stream(DeviceInterface.Why.self, wrap(page))
                await peer.drained()
                page = held
            }
            peer.reply(DeviceInterface.Why.self, wrap(page), to: header)
        } catch { peer.refuse(header, error) }
    }
}

private func serveLists(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.onStream(DeviceInterface.Downloads.self) { service, peer, header, parameters in
        let app = parameters.app.isEmpty ? nil : parameters.app
        service.answerPages(
            DeviceInterface.Downloads.self, header, to: peer,
            wrap: { (items: [ListedDownload]) in .init(downloads: items.map(\.wire)) }
        ) { service, last throws(AssetsError) in
            let records = try await service.downloads(
                of: app, after: last?.sequence ?? 0, limit: WireLimit.pageMax)
            return records.map { ListedDownload(sequence: $0.sequence, wire: service.wireStatus(of: $0)) }
        }
    }
    dispatcher.onStream(DeviceInterface.Journal.self) { service, peer, header, parameters in
        service.launch { service in await service.sendJournal(parameters, header, to: peer) }
    }
}

/// A row of the list of downloads with its place.
private struct ListedDownload: Sendable {
    let sequence: Int64
    let wire: DeviceInterface.Download
}

extension AssetsService {
    /// Sends journal rows after a number; with `follow` until the client is gone.
    fileprivate func sendJournal(
        _ parameters: DeviceInterface.Journal.Parameters, _ header: CallHeader, to peer: Peer
    ) async {
        let app = parameters.app.isEmpty ? nil : parameters.app
        var last = parameters.after
        let news = Signal()
        let watcher = parameters.follow ? watchJournal { news.raise() } : nil
        if watcher != nil { peer.whenEnded.append { _ in news.raise() } }
        defer { if let watcher { unwatchJournal(watcher) } }
        do throws(AssetsError) {
            while peer.isOpen {
                let rows = try await journalRows(app: app, after: last, limit: WireLimit.pageMax)
                last = rows.last?.number ?? last
                let entries = rows.map(DeviceInterface.JournalEntry.init)
                guard rows.count == WireLimit.pageMax || parameters.follow else {
                    return peer.reply(DeviceInterface.Journal.self, .init(entries: entries), to: header)
                }
                if !entries.isEmpty { peer.stream(DeviceInterface.Journal.self, .init(entries: entries)) }
                await peer.drained()
                if rows.count < WireLimit.pageMax, peer.isOpen { await news.wait() }
            }
        } catch { peer.refuse(header, error) }
    }
}

/// Something may have changed; many raises are one. Used on the service's executor only.
private final class Signal: @unchecked Sendable {
    // Sendable because both members are called on the service's executor.
    private var isRaised = false
    private var waiter: CheckedContinuation<Void, Never>?

    func raise() {
        isRaised = true
        waiter?.resume()
        waiter = nil
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if isRaised { continuation.resume() } else { waiter = continuation }
        }
        isRaised = false
    }
}
