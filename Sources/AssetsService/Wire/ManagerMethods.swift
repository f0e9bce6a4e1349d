// org.backgroundassets.Manager: what the module in an app or extension asks for.
internal import AssetsModel
internal import AssetsOS
internal import AssetsWire

func serveManager(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    serveIdentity(&dispatcher)
    serveDownloads(&dispatcher)
    serveSessions(&dispatcher)
    serveControl(&dispatcher)
}

/// For processes only: whose an extension is, its socket says.
func serveDeclaration(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.on(ManagerInterface.Declare.self) { service, peer, header, parameters in
        service.answer(ManagerInterface.Declare.self, header, to: peer) { service throws(AssetsError) in
            guard service.isDeveloperModeOn else {
                throw AssetsError(
                    .callerConnectionNotAccepted, "only an installed app may call; declaring one needs Developer Mode",
                    remedy: "switch it on with: backgroundassets settings developer-mode on")
            }
            _ = try service.installedApp(parameters.app)
            peer.declaredApp = parameters.app
            service.journal(.clientConnected, .declared, app: parameters.app, "a process declares itself as this app")
            return Nothing()
        }
    }
}

private func serveIdentity(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.on(ManagerInterface.Identity.self) { service, peer, header, _ in
        service.answer(ManagerInterface.Identity.self, header, to: peer) { service throws(AssetsError) in
            let caller = try await service.caller(peer)
            let app = try service.installedApp(caller.app)
            let groups = service.groupContainers(of: app, sharedOnly: caller.isExtension)
            return .init(
                app: caller.app, role: caller.isExtension ? "extension" : "app",
                groups: groups.map { .init(identifier: $0.identifier, container: service.absolute($0.folder)) },
                root: service.seams.files.root)
        }
    }
}

private func serveDownloads(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.on(ManagerInterface.Schedule.self) { service, peer, header, parameters in
        service.answer(ManagerInterface.Schedule.self, header, to: peer) { service throws(AssetsError) in
            let caller = try await service.caller(peer)
            let record = try await service.schedule(
                DownloadRequest(parameters.download), for: caller.app, byExtension: caller.isExtension)
            return .init(state: WireDownload.state(of: record, isRunning: service.isRunning(record.id)))
        }
    }
    dispatcher.on(ManagerInterface.StartForeground.self) { service, peer, header, parameters in
        service.answer(ManagerInterface.StartForeground.self, header, to: peer) { service throws(AssetsError) in
            let caller = try await service.caller(peer)
            guard !caller.isExtension else {
                throw AssetsError(
                    .callFromExtensionNotAllowed, "extensions cannot start foreground downloads",
                    remedy: "schedule it; the app can promote it")
            }
            let record = try await service.startForeground(
                DownloadRequest(parameters.download), for: caller.app, connection: peer.number)
            service.demoteWhenEnded(peer)
            return .init(state: WireDownload.state(of: record, isRunning: service.isRunning(record.id)))
        }
    }
    dispatcher.on(ManagerInterface.Cancel.self) { service, peer, header, parameters in
        service.answer(ManagerInterface.Cancel.self, header, to: peer) { service throws(AssetsError) in
            try await service.cancel(id: parameters.uniqueIdentifier, app: service.caller(peer).app)
            return Nothing()
        }
    }
    dispatcher.onStream(ManagerInterface.CurrentDownloads.self) { service, peer, header, _ in
        service.answerPages(
            ManagerInterface.CurrentDownloads.self, header, to: peer,
            wrap: { (items: [CurrentDownload]) in .init(downloads: items.map(\.wire)) }
        ) { service, last throws(AssetsError) in
            let app = try await service.caller(peer).app
            let records = try await service.currentDownloads(
                of: app, after: last?.sequence ?? 0, limit: WireLimit.pageMax)
            return records.map {
                CurrentDownload(
                    sequence: $0.sequence, wire: WireDownload($0, isRunning: service.isRunning($0.id)))
            }
        }
    }
}

/// A row of the list of current downloads with its place.
private struct CurrentDownload: Sendable {
    let sequence: Int64
    let wire: WireDownload
}

private func serveSessions(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.onStream(ManagerInterface.Events.self) { service, peer, header, _ in
        service.launch { service in
            do throws(AssetsError) {
                let caller = try await service.caller(peer)
                let id = service.openSession(
                    app: caller.app, isExtension: caller.isExtension, process: peer.process
                ) { event in peer.tell(ManagerInterface.Event(event)) }
                peer.session = id
                peer.whenEnded.append { $0.closeSession(id) }
                guard peer.isOpen else { return service.closeSession(id) }
                peer.tell(.init(kind: "session", number: 0, session: id))
            } catch { peer.refuse(header, error) }
        }
    }
    dispatcher.on(ManagerInterface.SetDelegate.self) { service, peer, header, parameters in
        service.answer(ManagerInterface.SetDelegate.self, header, to: peer) { service throws(AssetsError) in
            let caller = try await service.caller(peer)
            try service.setDelegate(
                parameters.present, hearsProgress: parameters.progress ?? true, session: parameters.session,
                app: caller.app)
            return Nothing()
        }
    }
    dispatcher.on(ManagerInterface.Answer.self) { service, peer, header, parameters in
        service.answerAtOnce(ManagerInterface.Answer.self, header, to: peer) { service, caller throws(AssetsError) in
            for (numbers, isHandled) in [(parameters.handled, true), (parameters.notHandled, false)] {
                for number in numbers {
                    try service.answer(
                        session: parameters.session, app: caller.app, number: number, isHandled: isHandled)
                }
            }
            return Nothing()
        }
    }
    dispatcher.on(ManagerInterface.AnswerChallenge.self) { service, peer, header, parameters in
        service.answer(ManagerInterface.AnswerChallenge.self, header, to: peer) { service throws(AssetsError) in
            let caller = try await service.caller(peer)
            let answer = WireAnswer(
                parameters.disposition, user: parameters.user, password: parameters.password, keep: parameters.keep)
            guard let answer else {
                let shown = parameters.disposition.prefix(40)
                throw AssetsError(.usage, "\(shown) is no disposition of a challenge, or something is missing")
            }
            try service.answerChallenge(
                session: parameters.session, app: caller.app, number: parameters.number, answer.disposition)
            return Nothing()
        }
    }
}

private func serveControl(_ dispatcher: inout WireDispatcher<AssetsService, Peer>) {
    dispatcher.on(ManagerInterface.AcquireControl.self) { service, peer, header, parameters in
        service.answerAtOnce(ManagerInterface.AcquireControl.self, header, to: peer) {
            service, caller throws(AssetsError) in
            let limit = parameters.within.map { Duration.milliseconds(min(max($0, 0), Int64(Int32.max))) }
            let (ticket, isGranted) = try service.acquireControl(
                session: parameters.session, app: caller.app, within: limit)
            return .init(ticket: ticket, granted: isGranted)
        }
    }
    dispatcher.on(ManagerInterface.ReleaseControl.self) { service, peer, header, parameters in
        service.answerAtOnce(ManagerInterface.ReleaseControl.self, header, to: peer) {
            service, caller throws(AssetsError) in
            try service.releaseControl(session: parameters.session, app: caller.app, ticket: parameters.ticket)
            return Nothing()
        }
    }
}

extension AssetsService {
    /// For whom a connection speaks.
    struct Caller {
        var app: String
        var isExtension: Bool
    }

    func isRunning(_ id: String) -> Bool { running[id] != nil }

    /// Answers a method that waits for nothing, without a task of its own, which would be a tenth of such a call's time.
    fileprivate func answerAtOnce<M: WireMethod>(
        _ method: M.Type, _ header: CallHeader, to peer: Peer,
        _ body: @escaping @Sendable (isolated AssetsService, Caller) throws(AssetsError) -> M.Reply
    ) {
        do throws(AssetsError) {
            if let caller = try knownCaller(peer) { return peer.reply(method, try body(self, caller), to: header) }
        } catch {
            return peer.refuse(header, error)
        }
        answer(method, header, to: peer) { service throws(AssetsError) in
            try body(service, try await service.caller(peer))
        }
    }

    /// The app behind a connection that was accepted before; nil for others.
    private func knownCaller(_ peer: Peer) throws(AssetsError) -> Caller? {
        if case .extensionOf(let app) = peer.origin {
            _ = try installedApp(app)
            return Caller(app: app, isExtension: true)
        }
        guard let accepted = peer.acceptedApp else { return nil }
        _ = try installedApp(accepted)
        return Caller(app: accepted, isExtension: false)
    }

    /// Finds the app behind a connection, once for its life; the first one accepted is the app's first launch.
    fileprivate func caller(_ peer: Peer) async throws(AssetsError) -> Caller {
        if let known = try knownCaller(peer) { return known }
        guard let app = appBehind(peer) else {
            throw AssetsError(
                .callerConnectionNotAccepted, "the calling process belongs to no installed app",
                remedy: "start the app with: backgroundassets launch")
        }
        if case .failure(let error) = LaunchGate.decide(
            app: app, identifier: app.id, installing: isInstalling(app.id))
        {
            journal(.clientRefused, .gate, app: app.id, error.reason)
            throw AssetsError(.callerConnectionNotAccepted, error.reason, remedy: error.remedy)
        }
        peer.acceptedApp = app.id
        journal(.clientConnected, peer.declaredApp == nil ? .none : .declared, app: app.id)
        try await noteLaunch(of: app.id)
        return Caller(app: app.id, isExtension: false)
    }

    private func appBehind(_ peer: Peer) -> AppRecord? {
        if let declared = peer.declaredApp { return apps[declared] }
        guard case .process(_, let executable) = peer.origin else { return nil }
        let folder = absolute("Applications/")
        guard executable.hasPrefix(folder) else { return nil }
        let parts = executable.dropFirst(folder.count).split(separator: "/", maxSplits: 2)
        guard parts.count == 3, let app = apps[String(parts[0])], parts[1] == app.buildFolder else { return nil }
        return app
    }

    /// What this connection holds in the foreground goes back when it closes.
    fileprivate func demoteWhenEnded(_ peer: Peer) {
        guard peer.isOpen else {
            let number = peer.number
            return launch { await $0.foregroundConnectionEnded(number) }
        }
        guard peer.whenEnded.isEmpty else { return }
        let number = peer.number
        peer.whenEnded.append { service in service.launch { await $0.foregroundConnectionEnded(number) } }
    }
}
