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
        #expect(control.release(ticket: 1, session: "app", at: .zero) == [.grant(ticket: 2, session: "extension")])
        #expect(control.release(ticket: 2, session: "extension", at: .zero) == [.grant(ticket: 3, session: "app")])
        #expect(control.release(ticket: 3, session: "app", at: .zero) == [])
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
        #expect(control.due == nil)
        #expect(control.acquire(Self.request(2, "extension", .seconds(3)), at: .zero) == [])
        #expect(control.due == .seconds(3))
        #expect(control.expire(at: .seconds(2)) == [])
        #expect(control.expire(at: .seconds(3)) == [.refuse(ticket: 2, session: "extension")])
        #expect(control.release(ticket: 1, session: "app", at: .zero) == [])
    }

    @Test("Death of the holder frees it, death of a waiter forgets it")
    func death() {
        var control = ExclusiveControl()
        _ = control.acquire(Self.request(1, "extension"), at: .zero)
        _ = control.acquire(Self.request(2, "gone"), at: .zero)
        _ = control.acquire(Self.request(3, "app"), at: .zero)
        #expect(control.end(session: "gone", at: .zero) == [])
        #expect(control.end(session: "extension", at: .zero) == [.grant(ticket: 3, session: "app")])
    }

    @Test("Who keeps others waiting for long is told of, once; who holds it alone never is")
    func longHolder() throws {
        let patience = PolicyNumbers.controlPatience
        var control = ExclusiveControl()
        _ = control.acquire(Self.request(1, "app"), at: .zero)
        #expect(control.due == nil && control.expire(at: patience * 2) == [])
        _ = control.acquire(Self.request(2, "extension"), at: patience * 2)
        // It has had it for long enough by now.
        #expect(control.due == patience)
        let actions = control.expire(at: patience * 2)
        guard case .tell(let holder, waiting: 1) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(holder.ticket == 1 && holder.session == "app" && holder.since == .zero)
        _ = control.acquire(Self.request(3, "third"), at: patience * 3)
        #expect(control.due == nil && control.expire(at: patience * 3) == [])
        // The next holder has a patience of its own.
        _ = control.release(ticket: 1, session: "app", at: patience * 4)
        #expect(control.due == patience * 5 && control.expire(at: patience * 4) == [])
        #expect(control.expire(at: patience * 5).count == 1)
        _ = control.end(session: "third", at: patience * 6)
        #expect(control.due == nil)
    }

    @Test("Control concerns its holder and those who wait, and nobody else")
    func concerns() {
        var control = ExclusiveControl()
        #expect(!control.concerns { _ in true })
        _ = control.acquire(Self.request(1, "app"), at: .zero)
        #expect(!control.concerns { $0 == "extension" })
        _ = control.acquire(Self.request(2, "extension"), at: .zero)
        #expect(control.concerns { $0 == "extension" })
        _ = control.release(ticket: 1, session: "app", at: .zero)
        #expect(control.concerns { $0 == "extension" } && !control.concerns { $0 == "app" })
        _ = control.release(ticket: 2, session: "extension", at: .zero)
        #expect(!control.concerns { _ in true })
    }

    @Test("Nobody releases what another holds")
    func foreignRelease() {
        var control = ExclusiveControl()
        _ = control.acquire(Self.request(1, "app"), at: .zero)
        _ = control.acquire(Self.request(2, "extension"), at: .zero)
        #expect(control.release(ticket: 1, session: "extension", at: .zero) == [])
        #expect(control.release(ticket: 9, session: "app", at: .zero) == [])
        #expect(control.acquire(Self.request(3, "third", .zero), at: .zero) == [.refuse(ticket: 3, session: "third")])
    }

    @Test("Random histories never have two holders, and nobody waits while it is free", arguments: 0..<200)
    func randomHistories(seed: Int) {
        var random = SplitMix(seed: UInt64(seed))
        var control = ExclusiveControl()
        var holders: [Int64: String] = [:]
        var waiting: Set<Int64> = []
        var sessions: [Int64: String] = [:]
        var told: Set<Int64> = []
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
                    actions = control.release(ticket: held, session: owner, at: now)
                } else {
                    actions = []
                }
            case 3:
                holders = holders.filter { $0.value != session }
                waiting = waiting.filter { sessions[$0] != session }
                actions = control.end(session: session, at: now)
            default: actions = control.expire(at: now)
            }
            for action in actions {
                switch action {
                case .grant(let ticket, let session):
                    #expect(holders.isEmpty)
                    #expect(waiting.remove(ticket) != nil)
                    holders[ticket] = session
                case .refuse(let ticket, _): #expect(waiting.remove(ticket) != nil)
                case .tell(let holder, let count):
                    #expect(holders[holder.ticket] == holder.session && count == waiting.count)
                    #expect(now - holder.since >= PolicyNumbers.controlPatience)
                    #expect(told.insert(holder.ticket).inserted)
                }
            }
            #expect(!holders.isEmpty || waiting.isEmpty)
            #expect(control.holder.map(\.ticket) == holders.keys.first)
            #expect(control.concerns { _ in true } == !holders.isEmpty)
            #expect(control.due == nil || !waiting.isEmpty)
        }
    }
}
