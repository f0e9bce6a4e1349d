// Networks that come and go, against a table.
import AssetsModel
import Testing

private let online = NetworkView(
    addresses: ["127.0.0.1", "192.0.2.10"], connected: ["192.0.2.10"], ways: ["link 2 via 192.0.2.1"])
private let offline = NetworkView(addresses: ["127.0.0.1"])
private let elsewhere = NetworkView(
    addresses: ["127.0.0.1", "198.51.100.7"], connected: ["198.51.100.7"], ways: ["link 3 via 198.51.100.1"])

@Suite("Connectivity")
struct ConnectivityTests {
    @Test(
        "A device is offline when nobody can be reached",
        arguments: [
            (NetworkView(), true), (offline, true), (online, false),
            // A way without an address of its own, as through a tunnel.
            (NetworkView(ways: ["link 5"]), false),
            // A neighbour may be the server.
            (NetworkView(addresses: ["10.0.0.1"], connected: ["10.0.0.1"]), false),
            // The cable is out, the address stays.
            (NetworkView(addresses: ["127.0.0.1", "10.0.0.1"]), true),
            // What machines give themselves leads nowhere.
            (NetworkView(addresses: ["169.254.3.4", "fe80::1"], connected: ["169.254.3.4", "fe80::1"]), true),
            (NetworkView(addresses: ["2001:db8::1"], connected: ["2001:db8::1"]), false),
        ])
    func isOffline(view: NetworkView, expected: Bool) {
        #expect(view.isOffline == expected)
    }

    @Test("Nothing is known before the kernel has told")
    func unknown() {
        let connectivity = Connectivity()
        #expect(!connectivity.isKnown && !connectivity.isOffline)
    }

    @Test("A network that goes and comes back: what waits is tried at once, connections of the old address go")
    func comeBack() {
        var connectivity = Connectivity()
        var actions = connectivity.see(online, at: .seconds(1), random: 0)
        #expect(actions == [.setRetryTimer(at: .seconds(1))])
        let isTime = connectivity.retryTimerFired(at: .seconds(1))
        #expect(isTime)
        actions = connectivity.see(offline, at: .seconds(50), random: 0)
        #expect(actions == [.dropConnections(keeping: ["127.0.0.1"]), .wentOffline])
        #expect(connectivity.isOffline && connectivity.changedAt == .seconds(50))
        actions = connectivity.see(offline, at: .seconds(55), random: 0)
        #expect(actions == [])
        actions = connectivity.see(online, at: .seconds(60), random: 0)
        #expect(actions == [.cameOnline, .setRetryTimer(at: .seconds(60))])
        #expect(!connectivity.isOffline)
    }

    @Test("Devices that come back together try again within half a second, apart")
    func spread() {
        var connectivity = Connectivity()
        guard case .setRetryTimer(let at)? = connectivity.see(online, at: .zero, random: .max).last else {
            Issue.record("no retry")
            return
        }
        #expect(at > .milliseconds(490) && at <= .milliseconds(500))
    }

    @Test("Another network without a moment of none is one all the same")
    func roaming() {
        var connectivity = Connectivity()
        _ = connectivity.see(online, at: .zero, random: 0)
        _ = connectivity.retryTimerFired(at: .zero)
        let actions = connectivity.see(elsewhere, at: .seconds(100), random: 0)
        #expect(
            actions == [
                .dropConnections(keeping: elsewhere.addresses), .changed, .setRetryTimer(at: .seconds(100)),
            ])
    }

    @Test("One more address breaks no connection")
    func moreAddresses() {
        var connectivity = Connectivity()
        _ = connectivity.see(online, at: .zero, random: 0)
        var more = online
        more.addresses.append("2001:db8::1")
        let actions = connectivity.see(more, at: .seconds(100), random: 0)
        #expect(!actions.contains { if case .dropConnections = $0 { true } else { false } })
    }

    @Test("What a machine gives itself, and takes away again, makes no other network")
    func ownAddresses() {
        var connectivity = Connectivity()
        _ = connectivity.see(online, at: .zero, random: 0)
        _ = connectivity.retryTimerFired(at: .zero)
        var more = online
        more.addresses.append("fe80::1")
        more.connected.append("fe80::1")
        var actions = connectivity.see(more, at: .seconds(100), random: 0)
        #expect(actions == [] && connectivity.changedAt == nil)
        actions = connectivity.see(online, at: .seconds(200), random: 0)
        #expect(actions == [.dropConnections(keeping: online.addresses)])
    }

    @Test("A network that flaps makes ever fewer retries, down to one in half a minute")
    func flapping() {
        var connectivity = Connectivity()
        var fired: [Duration] = []
        var timer: Duration?
        for tick in 0..<3000 {
            let now = Duration.milliseconds(tick * 100)
            if let at = timer, at <= now {
                timer = nil
                if connectivity.retryTimerFired(at: now) { fired.append(now) }
            }
            for action in connectivity.see(tick % 2 == 0 ? offline : online, at: now, random: 0) {
                if case .setRetryTimer(let at) = action {
                    #expect(timer == nil)
                    timer = at
                }
            }
        }
        #expect(fired.count >= 8 && fired.count <= 16)
        let rests = zip(fired.dropFirst(), fired).map { $0 - $1 }
        #expect(rests[0] >= .seconds(1) && rests[0] < .seconds(2))
        #expect(rests.dropFirst(5).allSatisfy { $0 >= .seconds(30) })
    }

    @Test("A retry whose network has gone again waits for the next one")
    func goneAgain() {
        var connectivity = Connectivity()
        _ = connectivity.see(online, at: .zero, random: .max)
        _ = connectivity.see(offline, at: .milliseconds(100), random: 0)
        let isTime = connectivity.retryTimerFired(at: .milliseconds(500))
        #expect(!isTime)
        let actions = connectivity.see(online, at: .seconds(1), random: 0)
        #expect(actions.last == .setRetryTimer(at: .seconds(1)))
    }

    @Test("A machine that just woke is not surely offline")
    func waking() {
        var connectivity = Connectivity()
        _ = connectivity.see(offline, at: .seconds(10), random: 0)
        #expect(!connectivity.isOffline(at: .seconds(69), for: .seconds(60)))
        #expect(connectivity.isOffline(at: .seconds(70), for: .seconds(60)))
    }
}
