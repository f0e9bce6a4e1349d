// What is said of each thing that waits: the one rule, and what releases it.
import AssetsModel
import Testing

@Suite("How things stand")
struct StandingTests {
    private static let now = Duration.seconds(1_700_000_000)

    private func record(
        _ transferClass: TransferClass = .background, reason: Reason = .none, notBefore: Duration? = nil
    ) -> DownloadRecord {
        DownloadRecord(
            sequence: 1, app: "a",
            request: DownloadRequest(
                identifier: "level", uniqueIdentifier: "u1", url: "https://cdn.example.com/level", group: "g"),
            transferClass: transferClass, notBefore: notBefore, reason: reason, detail: "why it is so")
    }

    private func view(
        used: Duration = .seconds(10), _ obstacle: (reason: Reason, detail: String, wait: Duration)? = nil
    ) -> Standing.ExtensionView {
        Standing.ExtensionView(phase: .suspended, used: used, budget: .seconds(300), obstacle: obstacle)
    }

    // MARK: Downloads

    @Test(
        "A pause names its cause and its end; what is watched for goes on before it",
        arguments: [
            (Reason.http, "its pause is over"), (.stall, "its pause is over"),
            (.network, "the network changes or its pause is over"), (.portal, "the network changes"),
            (.offline, "the device has a network; without that it is tried a last time"),
            (.space, "there is room on the device's disk; without that it is tried a last time"),
        ])
    func pauses(reason: Reason, release: String) {
        var around = Standing.Surroundings()
        (around.isOffline, around.isSpaceWatched) = (true, true)
        let until = Self.now + .seconds(60)
        let standing = Standing.waiting(record(reason: reason, notBefore: until), around, at: Self.now)
        #expect(standing.subject == .download && standing.reason == reason && standing.latest == until)
        #expect(standing.detail == "why it is so" && standing.release.hasPrefix(release), "\(standing.release)")
    }

    @Test("With the network and the room back only the pause is left")
    func unwatched() {
        for reason in [Reason.offline, .space] {
            let record = record(reason: reason, notBefore: Self.now + .seconds(1))
            #expect(Standing.waiting(record, .init(), at: Self.now).release.hasSuffix("its pause is over"))
        }
    }

    @Test("One rule at a time: a question before the gate, the gate before a pause, a pause before the queue")
    func order() {
        var around = Standing.Surroundings()
        around.obstacle = .places(3)
        var waiting = record(reason: .http, notBefore: Self.now)
        #expect(Standing.waiting(waiting, around, at: Self.now).reason == .concurrency)
        waiting.notBefore = Self.now + .seconds(1)
        #expect(Standing.waiting(waiting, around, at: Self.now).reason == .http)
        around.isGateShut = true
        #expect(Standing.waiting(waiting, around, at: Self.now).reason == .essentialFirst)
        waiting.transferClass = .essential
        #expect(Standing.waiting(waiting, around, at: Self.now).reason == .http)
        around.isHeldByQuestions = true
        #expect(Standing.waiting(waiting, around, at: Self.now).detail.contains("other downloads"))
        around.question = "it asks"
        let asked = Standing.waiting(waiting, around, at: Self.now)
        #expect(asked.reason == .challenge && asked.detail == "it asks" && asked.release.contains("30 s"))
    }

    @Test("The queue names the limit that is reached")
    func queue() {
        var queue = TransferQueue()
        let entry = { (id: String, app: String, host: String, transferClass: TransferClass) in
            QueueEntry(id: id, app: app, host: host, transferClass: transferClass, place: 1)
        }
        func start(_ entries: [QueueEntry]) {
            for entry in entries { queue.insert(entry, at: .zero) }
            for _ in 0..<entries.count * 4 + 8 {
                switch queue.next(at: .zero, isHeld: { _, _ in false }) {
                case .find(let transferClass): queue.found([], transferClass, at: .zero)
                case .load(let app, let transferClass, _): queue.load([], app: app, transferClass, isAll: true)
                case .start, .yield, .wait: break
                }
            }
        }
        let next = entry("n", "a", "h0", .background)
        #expect(queue.obstacle(to: next) == .turn)
        start((0..<3).map { entry("b\($0)", "a", "h\($0)", .background) })
        #expect(queue.obstacle(to: next) == .places(3))
        #expect(queue.obstacle(to: entry("f", "a", "h0", .foreground)) == .turn)
        start((0..<6).map { entry("f\($0)", "a", "one", .foreground) })
        #expect(queue.obstacle(to: entry("f", "a", "one", .foreground)) == .host("one", 6))
        #expect(queue.obstacle(to: entry("f", "b", "one", .foreground)) == .turn)
        var around = Standing.Surroundings()
        around.obstacle = .host("one", 6)
        #expect(Standing.waiting(record(), around, at: Self.now).detail == "6 transfers from one run, as many as may")
        around.obstacle = .places(3)
        let standing = Standing.waiting(record(), around, at: Self.now)
        #expect(standing.detail == "all 3 places for background transfers are taken" && standing.latest == nil)
        around.obstacle = .surplus(12, of: 3)
        let crowded = Standing.waiting(record(), around, at: Self.now)
        #expect(crowded.detail == "12 transfers share the 3 places for background transfers")
        #expect(crowded.release == "fewer than 3 of them are left")
    }

    // MARK: Messages

    @Test("A message says who has it, or what it waits for")
    func messages() {
        var view = Standing.MessageView()
        func standing() -> Standing { .message(record(), view, at: Self.now) }
        #expect(standing().reason == .concurrency && standing().detail.contains("other messages"))
        view.stage = .withDelegates
        view.answerLimit = Self.now + .seconds(9)
        #expect(standing().reason == .answer && standing().latest == Self.now + .seconds(9))
        view.stage = .inExtension
        #expect(standing().reason == .answer && standing().release.contains("runtime of the day"))
        view.stage = .waitingForExtension
        view.work = "downloads(for: .periodic)"
        #expect(standing().reason == .concurrency && standing().detail.contains(view.work))
        view.obstacle = (.budget, "used up", .seconds(40))
        #expect(standing().reason == .budget && standing().latest == Self.now + .seconds(40))
        #expect(standing().release == "some of its runtime is there again, or a process of the app takes it")
        view.stage = .pausing
        let paused = Standing.message(record(notBefore: Self.now + .seconds(2)), view, at: Self.now)
        #expect(paused.reason == .backoff && paused.latest == Self.now + .seconds(2))
        #expect(paused.detail.contains("after 8 it is given up"))
        view.isGateShut = true
        #expect(standing().reason == .gate)
    }

    @Test("What was given up names its file where there is one")
    func kept() {
        var message = GivenUpMessage(
            id: "u1", app: "a", identifier: "level", time: Self.now, file: .init(path: "p", inode: 1), detail: "died")
        let kept = Standing.kept(message, path: "/device/p")
        #expect(kept.subject == .keptFile && kept.reason == .crash)
        #expect(kept.detail == "died; its file is kept: /device/p")
        #expect(kept.identifier == "level" && kept.download == "u1" && kept.release.contains("moves the file"))
        message.file = nil
        #expect(Standing.kept(message, path: nil).detail.hasSuffix("there is no file"))
    }

    // MARK: Apps

    @Test("An extension that may not run says when it may again")
    func obstacles() {
        let free = Standing.extension(view(), at: Self.now)
        #expect(!free.isHeld && free.detail == "suspended, 10 s of the 300 s of its day are used")
        let spent = Standing.extension(view((.budget, "used up", .seconds(60))), at: Self.now)
        #expect(spent.reason == .budget && spent.latest == Self.now + .seconds(60))
        let large = Standing.extension(view((.size, "too large", .seconds(30))), at: Self.now)
        #expect(large.reason == .size && large.latest == nil && large.release.contains("removed"))
    }

    @Test("Exclusive control names its holder and who waits; an extension's is bounded by its runtime")
    func control() {
        let app = Standing.Party(isExtension: false, process: 12)
        let other = Standing.Party(isExtension: true)
        func standing(_ holder: Standing.Party, _ seconds: Int, _ waiting: [Standing.Party]) -> Standing {
            .control(holder: (holder, .seconds(seconds)), waiting: waiting, view(used: .seconds(280)), at: Self.now)
        }
        #expect(Standing.control(holder: nil, waiting: [], view(), at: Self.now).detail == "free")
        let alone = standing(app, 99, [])
        #expect(!alone.isHeld && alone.detail.hasPrefix("process 12 of the app has had exclusive control for 99 s"))
        let held = standing(app, 30, [other])
        #expect(held.reason == .control && held.latest == nil && held.release.hasPrefix("process 12 of the app gives"))
        #expect(held.detail.hasSuffix("and the extension waits for it; that is long"))
        #expect(!standing(app, 29, [other]).detail.contains("long"))
        let bounded = standing(other, 5, [app, app])
        #expect(bounded.latest == Self.now + .seconds(20) + PolicyNumbers.terminationGrace)
        #expect(bounded.detail.hasSuffix("and process 12 of the app, process 12 of the app wait for it"))
        #expect(standing(other, 5, Array(repeating: app, count: 9)).detail.contains("and 5 more wait"))
    }

    @Test("The gate says what opens it, in each phase another thing", arguments: InstallPhase.allCases)
    func gate(phase: InstallPhase) {
        let standing = Standing.gate(of: nil, identifier: "a", installing: phase)
        #expect(standing.reason == .gate && standing.detail == "a is still being installed" && standing.release != "")
    }

    @Test("Of periodic checks the next is named, or that one runs")
    func checks() {
        let plan = PeriodicPlan(lastUse: Self.now, lastCheck: Self.now, due: Self.now + .seconds(6 * 3600))
        let next = Standing.check(plan, nil, at: Self.now)
        #expect(!next.isHeld && next.detail.hasSuffix("comes in 6 h") && next.latest == plan.due)
        #expect(Standing.check(plan, nil, at: plan.due).detail.hasSuffix("about to begin"))
        #expect(Standing.check(nil, nil, at: Self.now).detail.contains("when the app can be launched"))
        let event = ContentEvent(app: "a", request: .periodic, origin: .planned, manifest: "m")
        #expect(Standing.check(plan, event, at: Self.now).detail.contains("(periodic, planned)"))
    }
}
