import AssetsModel
import Testing

@Suite("The life of an installation")
struct InstallLifeTests {
    private static let patience = PolicyNumbers.gatePatience
    private static let failure = AssetsError(.bundleInvalid, "no extension")

    /// A life that has been through `events`, and what it asked for with the last one.
    private static func life(_ events: InstallLife.Event..., at now: Duration = .zero) -> (
        InstallLife, [InstallLife.Action]
    ) {
        var life = InstallLife()
        var actions: [InstallLife.Action] = []
        for event in events { actions = life.handle(event, at: now) }
        return (life, actions)
    }

    @Test("A local bundle is unpacked at once, a URL is fetched first")
    func beginnings() {
        #expect(Self.life(.begin(sourceIsURL: false)).1 == [.enter(.unpacking), .stage])
        #expect(Self.life(.begin(sourceIsURL: true)).1 == [.enter(.archive), .fetchArchive])
        #expect(Self.life(.begin(sourceIsURL: true), .archiveFetched).1 == [.enter(.unpacking), .stage])
    }

    @Test("The gate stays shut from the manifest to the last essential download")
    func gatedPath() {
        var life = InstallLife()
        var seen: [InstallLife.Action] = []
        for event: InstallLife.Event in [
            .begin(sourceIsURL: false), .staged(gated: true), .manifestFetched, .answered(essentials: 2),
            .essentials(remaining: 1, received: 10),
        ] { seen += life.handle(event, at: .zero) }
        #expect(
            seen == [
                .enter(.unpacking), .stage, .enter(.manifest), .fetchManifest, .enter(.asking), .ask(.install),
                .enter(.essential), .watchEssentials, .setGateTimer(at: Self.patience),
            ])
        #expect(!life.isEnded)
        #expect(
            life.handle(.essentials(remaining: 0, received: 20), at: .seconds(1)) == [
                .openGate(.complete), .enter(.launchable),
            ])
        #expect(life.isEnded)
    }

    @Test("Without a gate the app is launchable before its manifest is fetched, and the gate opens once")
    func ungatedPath() {
        var (life, actions) = Self.life(.begin(sourceIsURL: false), .staged(gated: false))
        #expect(actions == [.enter(.manifest), .openGate(.notGated), .fetchManifest])
        #expect(life.handle(.manifestFetched, at: .zero) == [.enter(.asking), .ask(.install)])
        #expect(life.handle(.answered(essentials: 3), at: .zero) == [.enter(.launchable)])
    }

    @Test("Whatever keeps the essentials from being known makes the app launchable")
    func failuresOpenTheGate() {
        #expect(
            Self.life(.begin(sourceIsURL: false), .staged(gated: true), .manifestFailed).1 == [
                .openGate(.manifestFailed), .enter(.launchable),
            ])
        #expect(
            Self.life(.begin(sourceIsURL: false), .staged(gated: true), .manifestFetched, .extensionFailed).1 == [
                .openGate(.extensionFailed), .enter(.launchable),
            ])
        #expect(
            Self.life(.begin(sourceIsURL: false), .staged(gated: true), .manifestFetched, .answered(essentials: 0)).1
                == [.openGate(.nothingEssential), .enter(.launchable)])
    }

    @Test("A bundle or archive that cannot be used leaves nothing")
    func failuresRemoveEverything() {
        #expect(
            Self.life(.begin(sourceIsURL: false), .stagingFailed(Self.failure)).1 == [
                .removeEverything, .fail(Self.failure),
            ])
        #expect(
            Self.life(.begin(sourceIsURL: true), .archiveFailed(Self.failure)).1 == [
                .removeEverything, .fail(Self.failure),
            ])
    }

    @Test("The gate's patience is measured from the last progress")
    func patience() {
        var (life, _) = Self.life(
            .begin(sourceIsURL: false), .staged(gated: true), .manifestFetched, .answered(essentials: 1))
        #expect(
            life.handle(.essentials(remaining: 1, received: PolicyNumbers.gateProgressBytes), at: .seconds(100)) == [])
        #expect(life.handle(.gateTimerFired, at: Self.patience) == [.setGateTimer(at: .seconds(100) + Self.patience)])
        // Less than what counts as progress does not extend it.
        #expect(
            life.handle(.essentials(remaining: 1, received: PolicyNumbers.gateProgressBytes + 1), at: .seconds(200))
                == [])
        #expect(
            life.handle(.gateTimerFired, at: .seconds(100) + Self.patience) == [
                .openGate(.patience), .enter(.launchable),
            ])
    }

    @Test("Cancelling at any step removes everything", arguments: 0..<5)
    func cancel(steps: Int) {
        let path: [InstallLife.Event] = [
            .begin(sourceIsURL: true), .archiveFetched, .staged(gated: true), .manifestFetched,
            .answered(essentials: 1),
        ]
        var life = InstallLife()
        for event in path.prefix(steps + 1) { _ = life.handle(event, at: .zero) }
        #expect(life.handle(.cancel, at: .zero) == [.removeEverything, .tellCancelled])
        #expect(life.handle(.cancel, at: .zero) == [])
    }

    @Test("After a restart each phase goes on with its own step")
    func resume() {
        let expected: [(InstallPhase, [InstallLife.Action])] = [
            (.archive, [.enter(.archive), .fetchArchive]), (.unpacking, [.enter(.unpacking), .stage]),
            (.manifest, [.fetchManifest]), (.asking, [.ask(.install)]), (.essential, [.watchEssentials]),
            (.launchable, []), (.failed, []), (.cancelled, []),
        ]
        for (phase, actions) in expected {
            #expect(Self.life(.resume(phase, isGateOpen: false)).1 == actions)
        }
        // An app whose gate is open already is not made launchable twice.
        #expect(
            Self.life(.resume(.asking, isGateOpen: true), .answered(essentials: 1)).1 == [.enter(.launchable)])
    }

    @Test("A restarted wait for essentials learns what remains and gets its patience anew")
    func resumedEssentials() {
        var (life, _) = Self.life(.resume(.essential, isGateOpen: false))
        #expect(
            life.handle(.essentials(remaining: 2, received: 0), at: .seconds(5)) == [
                .setGateTimer(at: .seconds(5) + Self.patience)
            ])
        #expect(
            life.handle(.essentials(remaining: 0, received: 9), at: .seconds(6)) == [
                .openGate(.complete), .enter(.launchable),
            ])
    }

    @Test("Random histories open the gate at most once and do nothing after the end", arguments: 0..<200)
    func randomHistories(seed: Int) {
        var random = SplitMix(seed: UInt64(seed))
        var life = InstallLife()
        var actions: [InstallLife.Action] = []
        for step in 0..<40 {
            let wasEnded = life.isEnded
            let new = life.handle(Self.randomEvent(&random), at: .seconds(step * 30))
            #expect(!wasEnded || new.isEmpty)
            actions += new
        }
        let openings = actions.filter { if case .openGate = $0 { true } else { false } }
        #expect(openings.count <= 1)
        let launchable = actions.filter { $0 == .enter(.launchable) }.count
        let ends = launchable + actions.filter { $0 == .removeEverything }.count
        #expect(ends <= 1)
        #expect(launchable == 0 || openings.count == 1 || actions.contains(.enter(.manifest)) == false)
    }

    private static func randomEvent(_ random: inout SplitMix) -> InstallLife.Event {
        switch random.next() % 12 {
        case 0: .begin(sourceIsURL: random.next() % 2 == 0)
        case 1: .archiveFetched
        case 2: .archiveFailed(failure)
        case 3: .staged(gated: random.next() % 2 == 0)
        case 4: .stagingFailed(failure)
        case 5: .manifestFetched
        case 6: .manifestFailed
        case 7: .answered(essentials: Int(random.next() % 3))
        case 8: .extensionFailed
        case 9: .essentials(remaining: Int(random.next() % 3), received: Int64(random.next() % 1_000_000))
        case 10: .gateTimerFired
        default: random.next() % 10 == 0 ? .cancel : .manifestFetched
        }
    }
}
