import AssetsModel
import Testing

@Suite("Exclusive control")
struct ExclusiveControlTests {
    private static func request(_ ticket: Int64, _ session: String, _ deadline: Duration? = nil)
        -> ExclusiveControl.Request
    {
        ExclusiveControl.Request(ticket: ticket, session: session, deadline: deadline)
    }

    @Test("The first gets it at once, the others in the order in which they asked")
    func order() {
        var control = ExclusiveControl()
        #expect(control.acquire(Self.request(1, "app"), at: .zero) == [.grant(ticket: 1, session: "app")])
        #expect(control.acquire(Self.request(2, "extension"), at: .zero) == [])
        #expect(control.acquire(Self.request(3, "app"), at: .zero) == [])
        #expect(control.release(ticket: 1, session: "app") == [.grant(ticket: 2, session: "extension")])
        #expect(control.release(ticket: 2, session: "extension") == [.grant(ticket: 3, session: "app")])
        #expect(control.release(ticket: 3, session: "app") == [])
        #expect(control.isFree)
    }

    @Test("A deadline of now tries once")
    func deadlineNow() {
        var control = ExclusiveControl()
        #expect(
            control.acquire(Self.request(1, "app", .seconds(5)), at: .seconds(5)) == [.grant(ticket: 1, session: "app")]
        )
        #expect(
            control.acquire(Self.request(2, "extension", .seconds(5)), at: .seconds(5)) == [
                .refuse(ticket: 2, session: "extension")
            ])
    }

    @Test("A later deadline waits until then")
    func laterDeadline() {
        var control = ExclusiveControl()
        _ = control.acquire(Self.request(1, "app"), at: .zero)
        #expect(
            control.acquire(Self.request(2, "extension", .seconds(3)), at: .zero) == [.setTimer(at: .seconds(3))])
        #expect(control.expire(at: .seconds(2)) == [])
        #expect(control.expire(at: .seconds(3)) == [.refuse(ticket: 2, session: "extension")])
        #expect(control.release(ticket: 1, session: "app") == [])
    }

    @Test("Death of the holder frees it, death of a waiter forgets it")
    func death() {
        var control = ExclusiveControl()
        _ = control.acquire(Self.request(1, "extension"), at: .zero)
        _ = control.acquire(Self.request(2, "gone"), at: .zero)
        _ = control.acquire(Self.request(3, "app"), at: .zero)
        #expect(control.end(session: "gone") == [])
        #expect(control.end(session: "extension") == [.grant(ticket: 3, session: "app")])
    }

    @Test("Nobody releases what another holds")
    func foreignRelease() {
        var control = ExclusiveControl()
        _ = control.acquire(Self.request(1, "app"), at: .zero)
        _ = control.acquire(Self.request(2, "extension"), at: .zero)
        #expect(control.release(ticket: 1, session: "extension") == [])
        #expect(control.release(ticket: 9, session: "app") == [])
        #expect(control.acquire(Self.request(3, "third", .zero), at: .zero) == [.refuse(ticket: 3, session: "third")])
    }

    @Test("Random histories never have two holders, and nobody waits while it is free", arguments: 0..<200)
    func randomHistories(seed: Int) {
        var random = SplitMix(seed: UInt64(seed))
        var control = ExclusiveControl()
        var holders: [Int64: String] = [:]
        var waiting: Set<Int64> = []
        var sessions: [Int64: String] = [:]
        for step in 1...200 {
            let now = Duration.seconds(step)
            let session = "session \(random.next() % 4)"
            let ticket = Int64(step)
            let actions: [ExclusiveControl.Action]
            switch random.next() % 5 {
            case 0, 1:
                sessions[ticket] = session
                waiting.insert(ticket)
                let deadline = random.next() % 2 == 0 ? nil : now + .seconds(Int(random.next() % 6))
                actions = control.acquire(Self.request(ticket, session, deadline), at: now)
            case 2:
                if let (held, owner) = holders.first {
                    holders[held] = nil
                    actions = control.release(ticket: held, session: owner)
                } else {
                    actions = []
                }
            case 3:
                holders = holders.filter { $0.value != session }
                waiting = waiting.filter { sessions[$0] != session }
                actions = control.end(session: session)
            default: actions = control.expire(at: now)
            }
            for action in actions {
                switch action {
                case .grant(let ticket, let session):
                    #expect(holders.isEmpty)
                    #expect(waiting.remove(ticket) != nil)
                    holders[ticket] = session
                case .refuse(let ticket, _): #expect(waiting.remove(ticket) != nil)
                case .setTimer: break
                }
            }
            #expect(!holders.isEmpty || waiting.isEmpty)
        }
    }
}
