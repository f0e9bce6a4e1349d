// Servers that ask who asks: who is asked, for how long, and what a kill leaves of it.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Testing

private let right = Credential(user: "player", password: "open sesame 4711")
private let wrong = Credential(user: "player", password: "wrong")
private let giveRight = ScriptedExtension.ChallengeAnswer.disposition(.useCredential(right, .session))

@Suite("Simulated challenges")
struct ChallengeSimulationTests {
    /// Manifest and assets of one server in one protection space.
    private func scenario() -> Scenario {
        var scenario = Scenario()
        scenario.challengeAnswer = giveRight
        scenario.manifestCredential = right
        for index in scenario.assets.indices { scenario.assets[index].credential = right }
        return scenario
    }

    private func device(
        _ scenario: Scenario, _ answers: [ScriptedExtension.ChallengeAnswer] = [],
        then others: ScriptedExtension.ChallengeAnswer = giveRight
    ) -> SimulatedDevice {
        var scenario = scenario
        (scenario.challengeAnswers, scenario.challengeAnswer) = (answers, others)
        return scenario.device(seed: 1)
    }

    private func challenges(_ device: SimulatedDevice) -> [ScriptedExtension.Call] {
        device.extensions.calls.filter { $0.kind == .challenge }
    }

    @Test("The manifest asks, the extension answers once, and everything of the space is served")
    func installs() throws {
        let scenario = scenario()
        let device = device(scenario)
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).count == 1)
        #expect(challenges(device).first?.identifier.contains("Manifest") == true)
        // The credential is sent at once from then on.
        for asset in scenario.assets { #expect(device.server.log(of: asset.url).map(\.status) == [200]) }
        #expect(try device.row(.challengeAsked, .challenge) != nil)
        #expect(try device.row(.challengeAnswered) != nil)
        #expect(try device.journal().allSatisfy { !$0.detail.contains("4711") && !$0.detail.contains("player") })
    }

    @Test("A credential for one download is not used for another")
    func ownCredential() throws {
        let scenario = scenario()
        let device = device(scenario, then: .disposition(.useCredential(right, .download)))
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).count == 1 + scenario.assets.count)
    }

    @Test("A wrong credential is asked for again with the count of failures")
    func counts() throws {
        let scenario = scenario()
        let bad = ScriptedExtension.ChallengeAnswer.disposition(.useCredential(wrong, .session))
        let device = device(scenario, [bad, bad])
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).map(\.previousFailures) == [0, 1, 2])
    }

    /// One later asset that asks; everything else is open.
    private func oneAsset() -> Scenario {
        var scenario = Scenario()
        scenario.assets[2].credential = right
        return scenario
    }

    private func failure(_ device: SimulatedDevice) throws -> JournalEntry? {
        try device.journal().first { $0.event == .downloadFailed }
    }

    @Test("Nobody has a method: the download fails at once, and the extension is told")
    func notImplemented() throws {
        let device = device(oneAsset(), then: .notImplemented)
        try device.installAndSettle(oneAsset())
        #expect(try failure(device)?.reason == .challenge)
        #expect(device.messages(of: "l1").map(\.kind) == [.failed])
        #expect(try device.row(.challengeAnswered, .notImplemented) != nil)
    }

    @Test("Nobody answers: after the limit, not before, the download fails")
    func silence() throws {
        let device = device(oneAsset(), then: .hangs)
        try device.installAndSettle(oneAsset())
        let asked = try #require(try device.row(.challengeAsked)?.time)
        let failed = try #require(try failure(device)?.time)
        #expect(failed - asked >= PolicyNumbers.challengeLimit)
        #expect(failed - asked < PolicyNumbers.challengeLimit + .seconds(2))
        #expect(try device.row(.challengeTimedOut, .timeout) != nil)
        #expect(challenges(device).count == 1)
    }

    @Test("An extension that dies in the callback is asked again")
    func deaths() throws {
        let scenario = oneAsset()
        let device = device(scenario, [.died, .died])
        try device.installAndSettle(scenario)
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).count == 3)
    }

    @Test("A cancelled challenge fails the download with the code of a cancelled one")
    func cancelled() throws {
        let device = device(oneAsset(), then: .disposition(.cancel))
        let scenario = oneAsset()
        try device.installAndSettle(scenario)
        #expect(try failure(device)?.detail.contains("cancelled") == true)
        #expect(device.server.log(of: scenario.assets[2].url).count == 1)
    }

    // MARK: Delegates

    @Test("A download that waits for an answer holds no slot and no connection, and says why it waits")
    func waits() throws {
        let (scenario, device, delegate) = (oneAsset(), device(oneAsset()), SilentDelegate())
        try delegate.install(scenario, on: device)
        try device.loop.advance(by: .seconds(5))
        let waiting = try #require(try device.query { try $0.downloads(limit: 10) }.first { $0.state == .waiting })
        #expect(waiting.reason == .challenge && waiting.detail.contains("cdn.example.com"))
        #expect(device.inspect { $0.progress(of: waiting.id) == nil } == true)
        #expect(device.server.log(of: scenario.assets[2].url).count == 1)
        try delegate.answer(.useCredential(right, .session), on: device)
        try delegate.leave(device)
        try device.settle()
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).isEmpty)
    }

    @Test("A silent delegate is passed over after the limit: the extension is asked, and its answer counts")
    func silentDelegate() throws {
        let (scenario, device, delegate) = (oneAsset(), device(oneAsset()), SilentDelegate())
        try delegate.install(scenario, on: device)
        try device.loop.advance(by: PolicyNumbers.challengeLimit - .seconds(1))
        #expect(challenges(device).isEmpty)
        try device.loop.advance(by: .seconds(2))
        #expect(challenges(device).count == 1)
        try delegate.leave(device)
        try device.settle()
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
    }

    @Test("A delegate without the method, or one that goes, leaves it to the extension", arguments: [true, false])
    func leftToExtension(byAnswer: Bool) throws {
        let (scenario, device, delegate) = (oneAsset(), device(oneAsset()), SilentDelegate())
        try delegate.install(scenario, on: device)
        if byAnswer { try delegate.answer(nil, on: device) }
        try delegate.leave(device)
        try device.settle()
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).count == 1)
    }

    @Test("Of a download that was cancelled while its server asked nothing is left")
    func cancelledDownload() throws {
        let (scenario, device, delegate) = (oneAsset(), device(oneAsset()), SilentDelegate())
        try delegate.install(scenario, on: device)
        let id = try #require(delegate.questions.withLock { $0.first?.download })
        try device.call { try await $0.cancel(id: id, app: Scenario.app) }
        // Its answer comes too late and hits nothing.
        try delegate.answer(.useCredential(right, .session), on: device)
        try delegate.leave(device)
        try device.settle()
        #expect(device.server.log(of: scenario.assets[2].url).count == 1)
        #expect(try device.query { try $0.downloads(limit: 10) }.isEmpty)
        #expect(challenges(device).isEmpty)
    }

    @Test("Many downloads that ask do not all ask at once, and all are answered")
    func many() throws {
        var scenario = Scenario()
        scenario.assets = (0..<40).map {
            Scenario.Asset(identifier: "a\($0)", length: 500, isEssential: false, credential: right)
        }
        scenario.challengeAnswer = .disposition(.useCredential(right, .download))
        let device = scenario.device(seed: 3)
        try device.start()
        _ = try device.install(scenario.source)
        let most = Guarded(0)
        try device.loop.run(until: {
            let count = device.inspect { $0.openChallenges } ?? 0
            most.withLock { $0 = max($0, count) }
            return device.inspect { !$0.isBusy } ?? false
        })
        try device.loop.advance(by: .seconds(1))
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(challenges(device).count == 40)
        #expect(most.withLock { $0 } <= PolicyNumbers.openChallengesMax + PolicyNumbers.foregroundTransfersMax)
    }

    // MARK: Ends of the service

    @Test(
        "Killed after any line of its history, the service asks again and goes on", arguments: KillSimulationTests.ends)
    func kills(_ end: InterruptedRun.End) throws {
        let scenario = scenario()
        var number = 1
        while true {
            let run = InterruptedRun(scenario, seed: 1)
            try run.run([(.note(number), end)])
            guard run.device.kills + run.device.stops + run.device.powerCuts > 0 else { break }
            let problems = try scenario.problems(of: run.device)
            #expect(problems == [], "seed 1, \(end) after line \(number)")
            number += 1
        }
        #expect(number > 30, "the sweep ended too early")
    }

    @Test("Killed while a question waits for its answer, the service fetches anew and is asked anew")
    func killedWhileWaiting() throws {
        let (scenario, device, delegate) = (oneAsset(), device(oneAsset()), SilentDelegate())
        try delegate.install(scenario, on: device)
        device.kill()
        try device.start()
        try device.settle()
        let problems = try scenario.problems(of: device)
        #expect(problems == [])
        #expect(try device.journal().filter { $0.event == .challengeAsked }.count == 2)
        #expect(challenges(device).count == 1)
    }
}

/// A connected delegate that notes what it is asked.
private final class SilentDelegate: Sendable {
    let questions = Guarded<[(number: Int64, download: String)]>([])
    private let session = Guarded("")

    /// Installs the scenario's app and returns when a server has asked.
    func install(_ scenario: Scenario, on device: SimulatedDevice) throws {
        try device.start()
        let id = try device.call { service in
            let id = service.openSession(app: Scenario.app, isExtension: false) { event in
                guard case .challenge(let record, _, let number) = event else { return }
                self.questions.withLock { $0.append((number, record.id)) }
            }
            try service.setDelegate(true, session: id, app: Scenario.app)
            return id
        }
        session.withLock { $0 = id }
        _ = try device.install(scenario.source)
        try device.loop.run(until: { questions.withLock { !$0.isEmpty } })
    }

    func answer(_ disposition: ChallengeDisposition?, on device: SimulatedDevice) throws {
        let session = session.withLock { $0 }
        let number = questions.withLock { $0.first?.number ?? 0 }
        try device.call {
            try $0.answerChallenge(session: session, app: Scenario.app, number: number, disposition)
        }
    }

    func leave(_ device: SimulatedDevice) throws {
        let session = session.withLock { $0 }
        try device.call { $0.closeSession(session) }
    }
}
