import Glibc
import Testing

@testable import AssetsOS

/// A connection on a loop, and the blocking socket at its other end.
private struct Fixture {
    enum Event: Hashable, Sendable {
        case frame([UInt8])
        case drained
        case ended(FrameConnection.End)
    }

    let loop: EventLoop
    let peer: SharedDescriptor
    let connection: FrameConnection
    let inbox = Inbox<Event>()

    init(
        on loop: EventLoop,
        limits: FrameConnection.Limits = .init(frameMax: 1000, congestedAbove: 4000, stallMax: .seconds(50)),
        received: (@Sendable (FrameConnection, [UInt8]) -> Void)? = nil
    ) async throws {
        self.loop = loop
        var pair = try UnixSocket.pair()
        peer = SharedDescriptor(pair.takeFirst())
        let near = Guarded<Int32>(pair.takeSecond().release())
        let inbox = inbox
        connection = try await loop.perform {
            try FrameConnection(
                Descriptor(owning: near.withLock { $0 }), on: loop, limits: limits,
                handlers: .init(
                    received: { connection, frame in
                        inbox.put(.frame(Array(frame)))
                        received?(connection, Array(frame))
                    },
                    drained: { _ in inbox.put(.drained) },
                    ended: { _, end in inbox.put(.ended(end)) }))
        }
    }

    func write(_ text: String) throws { try write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = try check("send") {
                rest.withUnsafeBytes { send(peer.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
            rest = rest.dropFirst(sent)
        }
    }

    /// Reads from the blocking end until `count` bytes are there.
    func read(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            let got = try check("read") { Glibc.read(peer.rawValue, &piece, count - bytes.count) }
            try #require(got > 0, "the connection closed after \(bytes.count) bytes")
            bytes += piece.prefix(got)
        }
        return bytes
    }

    func closePeer() { shutdown(peer.rawValue, Int32(SHUT_RDWR)) }

    func expect(_ event: Event, _ location: SourceLocation = #_sourceLocation) async throws {
        let next = try await inbox.next()
        #expect(next == event, sourceLocation: location)
    }
}

private func frame(_ text: String) -> Fixture.Event { .frame(Array(text.utf8)) }

@Suite(.timeLimit(.minutes(10))) struct FrameConnectionTests {
    @Test("A call and its answer")
    func pingPong() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop) { connection, frame in connection.send(frame.reversed()) }
            for text in ["abc", "", "0123456789"] {
                try fixture.write(text + "\0")
                let expected = Array(text.utf8.reversed()) + [0]
                #expect(try fixture.read(expected.count) == expected)
            }
        }
    }

    @Test("A frame in pieces arrives whole")
    func split() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop)
            for byte in "hello".utf8 {
                try fixture.write([byte])
                // The loop has seen each piece by itself.
                try await loop.perform {}
            }
            try fixture.write([0])
            try await fixture.expect(frame("hello"))
        }
    }

    @Test("Frames in one piece arrive one by one")
    func merged() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop)
            try fixture.write("one\0\0three\0fo")
            try await fixture.expect(frame("one"))
            try await fixture.expect(frame(""))
            try await fixture.expect(frame("three"))
            try fixture.write("ur\0")
            try await fixture.expect(frame("four"))
        }
    }

    @Test("Random pieces of random frames arrive as they were sent", arguments: 1...8 as ClosedRange<UInt64>)
    func randomPieces(seed: UInt64) async throws {
        try await withLoop { loop in
            var random = SeededGenerator(seed: seed)
            let limits = FrameConnection.Limits(frameMax: 200_000, congestedAbove: 4000, stallMax: .seconds(50))
            let fixture = try await Fixture(on: loop, limits: limits)
            let frames = (0..<60).map { _ -> [UInt8] in
                let length =
                    Bool.random(using: &random)
                    ? Int.random(in: 0...40, using: &random) : Int.random(in: 0...150_000, using: &random)
                return [UInt8](repeating: UInt8.random(in: 1...255, using: &random), count: length)
            }
            var bytes = Array(frames.joined(separator: [0]))[...] + [0]
            while !bytes.isEmpty {
                let piece = bytes.prefix(Int.random(in: 1...100_000, using: &random))
                try fixture.write(Array(piece))
                bytes = bytes.dropFirst(piece.count)
            }
            for frame in frames {
                let next = try await fixture.inbox.next()
                #expect(next == .frame(frame), "seed \(seed)")
            }
        }
    }

    @Test("The longest frame passes, a longer one ends the connection", arguments: [true, false])
    func frameLimit(closedByNUL: Bool) async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop)
            let longest = String(repeating: "x", count: 1000)
            try fixture.write(longest + "\0")
            try await fixture.expect(frame(longest))
            try fixture.write(longest + "y" + (closedByNUL ? "\0" : ""))
            try await fixture.expect(.ended(.frameTooLong))
        }
    }

    @Test("The peer's end is told, between frames and inside one")
    func ends() async throws {
        try await withLoop { loop in
            let polite = try await Fixture(on: loop)
            try polite.write("bye\0")
            polite.closePeer()
            try await polite.expect(frame("bye"))
            try await polite.expect(.ended(.closed))

            let rude = try await Fixture(on: loop)
            try rude.write("by")
            rude.closePeer()
            try await rude.expect(.ended(.truncated))
        }
    }

    @Test("A held connection delivers the next frame after its release")
    func hold() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop) { connection, _ in connection.hold() }
            try fixture.write("one\0two\0")
            try await fixture.expect(frame("one"))
            try fixture.write("three\0")
            let connection = fixture.connection
            let inbox = fixture.inbox
            try await loop.perform {
                connection.send(Array("first".utf8))
                inbox.put(.drained)
                connection.release()
            }
            // Not a frame came before the release.
            try await fixture.expect(.drained)
            try await fixture.expect(frame("two"))
            try await loop.perform { connection.release() }
            try await fixture.expect(frame("three"))
            #expect(try fixture.read(6) == Array("first\0".utf8))
        }
    }

    @Test("A peer that closes while its call is held is noticed at once")
    func heldPeerCloses() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop) { connection, _ in connection.hold() }
            try fixture.write("subscribe\0")
            try await fixture.expect(frame("subscribe"))
            fixture.closePeer()
            try await fixture.expect(.ended(.closed))
        }
    }

    @Test("A client that only stopped sending still gets its answer")
    func halfClosed() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop) { connection, _ in connection.hold() }
            try fixture.write("ask\0")
            try await fixture.expect(frame("ask"))
            shutdown(fixture.peer.rawValue, Int32(SHUT_WR))
            let connection = fixture.connection
            try await loop.perform {
                connection.send(Array("answer".utf8))
                connection.release()
            }
            #expect(try fixture.read(7) == Array("answer\0".utf8))
            try await fixture.expect(.ended(.closed))
        }
    }

    @Test("A full socket makes the connection congested until everything was taken")
    func congestion() async throws {
        try await withLoop { loop in
            let limits = FrameConnection.Limits(frameMax: 1 << 20, congestedAbove: 100_000, stallMax: .seconds(50))
            let fixture = try await Fixture(on: loop, limits: limits)
            let connection = fixture.connection
            let sent = try await loop.perform {
                var count = 0
                while !connection.isCongested {
                    connection.send([UInt8](repeating: UInt8(truncatingIfNeeded: count % 250 + 1), count: 9999))
                    count += 1
                }
                return count
            }
            #expect(try await loop.perform { connection.waiting } > 100_000)
            // Nothing is read while replies wait.
            try fixture.write("later\0")
            try await loop.perform {}
            for number in 0..<sent {
                let expected = [UInt8](repeating: UInt8(truncatingIfNeeded: number % 250 + 1), count: 9999) + [0]
                #expect(try fixture.read(10_000) == expected)
            }
            try await fixture.expect(.drained)
            try await fixture.expect(frame("later"))
            #expect(try await loop.perform { connection.waiting } == 0)
        }
    }

    @Test("A peer that takes nothing is cut off")
    func stall() async throws {
        try await withLoop { loop in
            let limits = FrameConnection.Limits(frameMax: 1 << 20, congestedAbove: 100, stallMax: .milliseconds(30))
            let fixture = try await Fixture(on: loop, limits: limits)
            let connection = fixture.connection
            let start = loop.now
            try await loop.perform {
                while !connection.isCongested { connection.send([UInt8](repeating: 1, count: 100_000)) }
            }
            try await fixture.expect(.ended(.stalled))
            #expect(loop.now - start >= .milliseconds(30))
            #expect(try await loop.perform { connection.isOpen } == false)
        }
    }

    @Test("An owner that ignores the congestion loses the connection, not its memory")
    func overflow() async throws {
        try await withLoop { loop in
            let limits = FrameConnection.Limits(frameMax: 100_000, congestedAbove: 100, stallMax: .seconds(50))
            let fixture = try await Fixture(on: loop, limits: limits)
            let connection = fixture.connection
            try await loop.perform {
                for _ in 0..<100 { connection.send([UInt8](repeating: 1, count: 100_000)) }
                #expect(connection.waiting <= limits.waitingMax)
            }
            try await fixture.expect(.ended(.overflow))
        }
    }

    @Test("A peer that closed before the answer ends the connection, later, not inside the call")
    func brokenPipe() async throws {
        try await withLoop { loop in
            let fixture = try await Fixture(on: loop)
            let connection = fixture.connection
            let inbox = fixture.inbox
            try await loop.perform {
                fixture.closePeer()
                connection.send(Array("too late".utf8))
                inbox.put(.drained)
            }
            try await fixture.expect(.drained)
            try await fixture.expect(.ended(.closed))
        }
    }

    @Test("Finishing sends everything first, closing says nothing")
    func finishAndClose() async throws {
        try await withLoop { loop in
            let limits = FrameConnection.Limits(frameMax: 1 << 20, congestedAbove: 4 << 20, stallMax: .seconds(50))
            let finished = try await Fixture(on: loop, limits: limits)
            let connection = finished.connection
            try await loop.perform {
                connection.send([UInt8](repeating: 1, count: 1 << 20))
                connection.send([UInt8](repeating: 2, count: 3))
                connection.finish()
                connection.send([9])
            }
            let all = try readAll(finished.peer.rawValue)
            #expect(all.count == (1 << 20) + 5)
            #expect(all.suffix(4) == [2, 2, 2, 0])
            try await finished.expect(.ended(.closed))

            let closed = try await Fixture(on: loop)
            try await loop.perform {
                closed.connection.close()
                closed.connection.send([1])
                closed.connection.release()
                closed.connection.finish()
                #expect(!closed.connection.isOpen)
            }
            #expect(try readAll(closed.peer.rawValue).isEmpty)
            try await loop.perform { closed.inbox.put(.drained) }
            try await closed.expect(.drained)
        }
    }

    @Test("Descriptors arrive with the frame they belong to, also through a full socket")
    func descriptors() async throws {
        try await withLoop { loop in
            let limits = FrameConnection.Limits(frameMax: 1 << 20, congestedAbove: 8 << 20, stallMax: .seconds(50))
            let fixture = try await Fixture(on: loop, limits: limits)
            var files: [SharedDescriptor] = []
            for _ in 0..<3 {
                var pair = try UnixSocket.pair()
                files.append(SharedDescriptor(pair.takeFirst()))
            }
            let inodes = files.map { inode($0.rawValue) }
            let passed = files
            let connection = fixture.connection
            try await loop.perform {
                connection.send(Array("direct".utf8), descriptors: [passed[0]])
                connection.send([UInt8](repeating: 1, count: 900_000))
                connection.send(Array("second".utf8), descriptors: [passed[1]])
                connection.send(Array("third".utf8), descriptors: [passed[2]])
                connection.send(Array("plain".utf8))
            }
            files = []
            var received: [(position: Int, inode: UInt64)] = []
            var bytes: [UInt8] = []
            let borrowed = Descriptor(owning: dup(fixture.peer.rawValue))
            let total = 7 + 900_001 + 7 + 6 + 6
            while bytes.count < total {
                let message = try UnixSocket.receive(5, from: borrowed)
                for descriptor in message.descriptors { received.append((bytes.count, inode(descriptor.rawValue))) }
                bytes += message.bytes
            }
            #expect(received.map(\.inode) == inodes)
            let starts = [0, 7 + 900_001, 7 + 900_001 + 7]
            for (index, item) in received.enumerated() {
                // The kernel never reads on past bytes that carry descriptors.
                #expect(item.position <= starts[index] && starts[index] < item.position + 5)
            }
            #expect(Array(bytes.suffix(19)) == Array("second\0third\0plain\0".utf8))
        }
    }

    @Test("A blocking stream speaks with a connection, and tells a broken frame from an end")
    func blockingStream() async throws {
        try await withLoop { loop in
            let limits = FrameConnection.Limits(frameMax: 200_000, congestedAbove: 300_000, stallMax: .seconds(50))
            let fixture = try await Fixture(on: loop, limits: limits) { connection, frame in connection.send(frame) }
            let stream = FrameStream(fixture.peer, frameMax: 200_000)
            for length in [0, 1, 5000, 200_000] {
                let frame = [UInt8](repeating: 42, count: length)
                try stream.send(frame)
                let answer = try #require(try stream.receive())
                #expect(Array(answer) == frame)
            }
            let connection = fixture.connection
            try await loop.perform { connection.close() }
            #expect(try stream.receive() == nil)

            var pair = try UnixSocket.pair()
            let short = FrameStream(SharedDescriptor(pair.takeFirst()), frameMax: 4)
            let far = pair.takeSecond()
            write(far.rawValue, "12345", 5)
            #expect(throws: FrameStream.Failure.frameTooLong) { _ = try short.receive() }
        }
    }

    private func inode(_ descriptor: Int32) -> UInt64 {
        var status = stat()
        fstat(descriptor, &status)
        return UInt64(status.st_ino)
    }
}
