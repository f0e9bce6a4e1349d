import Glibc
import Testing

@testable import AssetsOS

/// An actor that lives on a loop, as those of the service do.
private actor Counter {
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var value = 0

    init(loop: EventLoop) { self.loop = loop }

    func add() -> Bool {
        value += 1
        return loop.isOnLoop
    }
}

@Suite(.timeLimit(.minutes(10))) struct EventLoopTests {
    @Test("Actors run on their loop, whoever calls them")
    func actors() async throws {
        try await withLoop { loop in
            let counter = Counter(loop: loop)
            await withTaskGroup { group in
                for _ in 0..<200 {
                    group.addTask { #expect(await counter.add()) }
                }
            }
            #expect(await counter.value == 200)
        }
    }

    @Test("A task that prefers the loop runs on it, also after it waited")
    func taskPreference() async throws {
        try await withLoop { loop in
            let task = Task(executorPreference: loop) {
                let before = loop.isOnLoop
                await loop.pause(for: .milliseconds(1))
                return (before, loop.isOnLoop)
            }
            let (before, after) = await task.value
            #expect(before)
            #expect(after)
        }
    }

    @Test("Timers fire in the order of their deadlines, equal ones as they were made")
    func timerOrder() async throws {
        try await withLoop { loop in
            let inbox = Inbox<Int>()
            try await loop.perform {
                let start = loop.now
                for (number, delay) in [(4, 6), (2, 3), (1, 1), (3, 3)] {
                    _ = loop.schedule(at: start + .milliseconds(delay)) { inbox.put(number) }
                }
            }
            for expected in 1...4 {
                let event1 = try await inbox.next()
                #expect(event1 == expected)
            }
        }
    }

    @Test("A timer fires no earlier than its deadline")
    func notEarly() async throws {
        try await withLoop { loop in
            let deadline = loop.now + .microseconds(2500)
            let inbox = Inbox<Duration>()
            _ = loop.schedule(at: deadline) { inbox.put(loop.now) }
            let event2 = try await inbox.next()
            #expect(event2 >= deadline)
        }
    }

    @Test("A cancelled timer does not fire")
    func cancelledTimer() async throws {
        try await withLoop { loop in
            let inbox = Inbox<String>()
            let start = loop.now
            let doomed = loop.schedule(at: start + .milliseconds(2)) { inbox.put("cancelled") }
            _ = loop.schedule(at: start + .milliseconds(4)) { inbox.put("later") }
            loop.cancel(doomed)
            let event3 = try await inbox.next()
            #expect(event3 == "later")
        }
    }

    @Test("A watched descriptor is reported until it is no longer watched")
    func watches() async throws {
        try await withLoop { loop in
            var pair = try UnixSocket.pair()
            let near = SharedDescriptor(pair.takeFirst())
            let far = SharedDescriptor(pair.takeSecond())
            let inbox = Inbox<String>()
            try await loop.perform {
                try loop.watch(near.rawValue, for: .read) { readiness in
                    var byte: UInt8 = 0
                    read(near.rawValue, &byte, 1)
                    inbox.put("read \(byte) \(readiness.contains(.read))")
                    loop.unwatch(near.rawValue)
                }
            }
            write(far.rawValue, [7, 8] as [UInt8], 2)
            let event4 = try await inbox.next()
            #expect(event4 == "read 7 true")
            // The second byte is there, and nobody is told.
            try await loop.perform { inbox.put("nothing more") }
            let event5 = try await inbox.next()
            #expect(event5 == "nothing more")
        }
    }

    @Test("An event of a descriptor that a handler before it closed is dropped")
    func staleEvent() async throws {
        try await withLoop { loop in
            var firstPair = try UnixSocket.pair()
            var secondPair = try UnixSocket.pair()
            let near = [SharedDescriptor(firstPair.takeFirst()), SharedDescriptor(secondPair.takeFirst())]
            let far = [SharedDescriptor(firstPair.takeSecond()), SharedDescriptor(secondPair.takeSecond())]
            let inbox = Inbox<String>()
            // Both become readable while the loop is busy, so that one wait reports both.
            try await loop.perform {
                for (index, socket) in near.enumerated() {
                    try loop.watch(socket.rawValue, for: .read) { _ in
                        inbox.put("event")
                        let other = near[1 - index].rawValue
                        loop.unwatch(socket.rawValue)
                        loop.unwatch(other)
                        // A new watch of the same number, of which no event is due.
                        try? loop.watch(other, for: .write) { _ in
                            inbox.put("writable")
                            loop.unwatch(other)
                        }
                    }
                }
                for socket in far { write(socket.rawValue, [1] as [UInt8], 1) }
            }
            let event6 = try await inbox.next()
            #expect(event6 == "event")
            let event7 = try await inbox.next()
            #expect(event7 == "writable")
        }
    }

    @Test("A stopped loop ends its run once the jobs are done")
    func stops() throws {
        let loop = try EventLoop()
        let ran = Guarded(0)
        for _ in 0..<3 { _ = loop.schedule(at: .zero) { ran.withLock { $0 += 1 } } }
        loop.stop()
        loop.run()
        #expect(ran.withLock { $0 } == 3)
    }

    @Test("A loop that waits is woken by jobs from many threads, and loses none")
    func wakes() async throws {
        try await withLoop { loop in
            let done = Inbox<Int>()
            await withTaskGroup { group in
                for number in 0..<64 {
                    group.addTask {
                        for _ in 0..<20 { _ = try? await loop.perform { 1 } }
                        done.put(number)
                    }
                }
            }
            var seen: Set<Int> = []
            for _ in 0..<64 { seen.insert(try await done.next()) }
            #expect(seen.count == 64)
        }
    }
}
