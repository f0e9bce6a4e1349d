// Exclusive control in the whole service: who is kept awake by it, and what people are told of a holder that stays.
import AssetsModel
import AssetsOS
import AssetsService
import BackgroundAssetsTesting
import Testing

@Suite("Simulated exclusive control")
struct ControlSimulationTests {
    private static let app = Scenario.app

    @Test("An extension that waits for control or has it is awake, and who keeps it waiting is told of once")
    func awake() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 1)
        try device.installAndSettle(scenario)
        let heard = Guarded<[SessionEvent]>([])
        let holder = try device.call { $0.openSession(app: Self.app, isExtension: false) { _ in } }
        let waiter = try device.call { service in
            service.openSession(app: Self.app, isExtension: true) { event in heard.withLock { $0.append(event) } }
        }
        let isAwake = { device.inspect { $0.isAwakeForControl(Self.app) } }
        #expect(try device.call { try $0.acquireControl(session: holder, app: Self.app, within: nil) }.isGranted)
        #expect(isAwake() == false)
        try device.loop.advance(by: .seconds(5))
        let ticket = try device.call { try $0.acquireControl(session: waiter, app: Self.app, within: nil) }.ticket
        #expect(isAwake() == true)

        try device.loop.advance(by: PolicyNumbers.controlPatience * 10)
        let waits = try #require(try device.row(.controlWaits))
        #expect(waits.detail == "ticket \(ticket) of the extension: a process of the app has had it for 5 s")
        let held = try #require(try device.row(.controlHeld))
        #expect(held.detail.contains("a process of the app has exclusive control for 30 s, and 1 waits for it"))
        #expect(isAwake() == true && heard.withLock { $0 } == [])

        try device.call { $0.closeSession(holder) }
        try device.loop.advance(by: .seconds(1))
        #expect(heard.withLock { $0 } == [.controlGranted(ticket: ticket)] && isAwake() == true)
        try device.call { try $0.releaseControl(session: waiter, app: Self.app, ticket: ticket) }
        #expect(isAwake() == false)
        try device.call { $0.closeSession(waiter) }
    }

    @Test("Deadlines of many who wait are kept to, each at its time, whoever comes and goes meanwhile")
    func deadlines() throws {
        let scenario = Scenario()
        let device = scenario.device(seed: 1)
        try device.installAndSettle(scenario)
        let refused = Guarded<[Int64: Duration]>([:])
        let (loop, app) = (device.loop, Self.app)
        let session = try device.call { service in
            service.openSession(app: app, isExtension: false) { event in
                guard case .controlRefused(let ticket) = event else { return }
                refused.withLock { $0[ticket] = loop.now }
            }
        }
        let first = try device.call { try $0.acquireControl(session: session, app: app, within: nil) }
        var due: [Int64: Duration] = [:]
        for seconds in [9, 3, 40, 6, 3] {
            let now = loop.now
            let ticket = try device.call {
                try $0.acquireControl(session: session, app: app, within: .seconds(seconds))
            }.ticket
            due[ticket] = now + .seconds(seconds)
        }
        try loop.advance(by: .seconds(60))
        #expect(refused.withLock { $0 } == due)
        try device.call { try $0.releaseControl(session: session, app: app, ticket: first.ticket) }
        #expect(try device.call { try $0.acquireControl(session: session, app: app, within: .zero) }.isGranted)
        try device.call { $0.closeSession(session) }
    }
}
