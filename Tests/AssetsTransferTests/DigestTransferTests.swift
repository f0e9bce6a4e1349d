// Files whose bytes are compared with a digest while they come.
import AssetsModel
import AssetsOS
import AssetsTransfer
import Glibc
import Testing

@Suite("Transfers with a digest", .timeLimit(.minutes(10)))
struct DigestTransferTests {
    private typealias Answer = RawServer.Answer

    private static let content = noise(3_000_000)

    private static func digest(
        of bytes: some Collection<UInt8>, _ algorithm: ContentDigest.Algorithm = .sha256
    ) -> ContentDigest {
        let hasher = ContentHasher(algorithm)
        Array(bytes).withUnsafeBytes { hasher.add($0) }
        return hasher.digest()
    }

    private static func field(_ name: String, _ digest: ContentDigest) -> String {
        "\(name): \(digest.algorithm.rawValue)=:\(Base64.encode(digest.bytes)):"
    }

    private static func head(_ fields: String...) -> [String] {
        ["Content-Length: \(content.count)", "ETag: \"v1\""] + fields
    }

    private static func rest(from offset: Int, _ fields: String...) -> Answer {
        Answer(
            "HTTP/1.1 206 Partial Content",
            [
                "Content-Length: \(content.count - offset)", "ETag: \"v1\"",
                "Content-Range: bytes \(offset)-\(content.count - 1)/\(content.count)",
            ] + fields, content[offset...])
    }

    @Test("The hash is that of everybody else")
    func vectors() {
        #expect(
            Self.digest(of: []).hexadecimal == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            Self.digest(of: "abc".utf8).hexadecimal
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(Self.digest(of: "abc".utf8, .sha512).hexadecimal.hasPrefix("ddaf35a193617abacc417349ae204131"))
    }

    @Test(
        "A file whose bytes come to what was declared or sent arrives, and what they come to is told",
        arguments: ["declared", "Repr-Digest", "Content-Digest", "x-amz-checksum-sha256", "sha-512"])
    func right(source: String) async throws {
        var digest = Self.digest(of: Self.content)
        var fields: [String] = []
        switch source {
        case "declared": break
        case "x-amz-checksum-sha256": fields = ["\(source): \(Base64.encode(digest.bytes))"]
        case "sha-512":
            digest = Self.digest(of: Self.content, .sha512)
            fields = [Self.field("Repr-Digest", digest)]
        default: fields = [Self.field(source, digest)]
        }
        try await serve([Answer("HTTP/1.1 200 OK", Self.head() + fields, Self.content)]) { server, bench in
            var spec = bench.spec(server.url("/f"))
            if source == "declared" { spec.digest = digest }
            let events = await bench.run(spec)
            guard case .received(3_000_000, _, let note, digest)? = events.outcome else {
                Issue.record("\(events)")
                return
            }
            #expect(note?.digest == (source == "declared" ? nil : digest))
        }
    }

    @Test("An empty file has a digest too", arguments: [true, false])
    func empty(isRight: Bool) async throws {
        try await serve([Answer("HTTP/1.1 200 OK", ["Content-Length: 0"], [])]) { server, bench in
            var spec = bench.spec(server.url("/f"))
            spec.digest = Self.digest(of: isRight ? [] : [0])
            let events = await bench.run(spec)
            #expect(events.receivedLength == (isRight ? 0 : nil))
            #expect(events.refusal?.reason == (isRight ? nil : .digest))
        }
    }

    @Test("A file whose bytes come to something else fails, with both values", arguments: [true, false])
    func wrong(isDeclared: Bool) async throws {
        let other = Self.digest(of: [1])
        let fields = isDeclared ? Self.head() : Self.head(Self.field("Repr-Digest", other))
        try await serve([Answer("HTTP/1.1 200 OK", fields, Self.content)]) { server, bench in
            var spec = bench.spec(server.url("/f"))
            if isDeclared { spec.digest = other }
            let refusal = try #require(await bench.run(spec).refusal)
            #expect(refusal.reason == .digest)
            for digest in [other, Self.digest(of: Self.content)] {
                #expect(refusal.failure.reason.contains(digest.hexadecimal))
            }
            #expect(server.stop().count == 1)
        }
    }

    /// What a first attempt leaves that breaks off after so many bytes.
    private func begin(_ server: RawServer, _ bench: Bench, _ digest: ContentDigest? = nil) async throws -> ResumePoint
    {
        var spec = bench.spec(server.url("/f"))
        spec.digest = digest
        let events = await bench.run(spec)
        try #require(events.interruption != nil)
        return try #require(events.checkpoint)
    }

    @Test("What is there from before is read once, while the rest comes", arguments: [1, 100_000, 2_999_999])
    func resumed(offset: Int) async throws {
        let first = Answer("HTTP/1.1 200 OK", Self.head(), Self.content[..<offset])
        let reads = Reads()
        try await serve([first, Self.rest(from: offset)], wrap: { FaultyTree($0, reads: reads) }) { server, bench in
            let digest = Self.digest(of: Self.content)
            let note = try await begin(server, bench, digest)
            #expect(reads.bytes == 0)
            var spec = bench.spec(server.url("/f"), resume: note)
            spec.digest = digest
            let events = await bench.run(spec)
            #expect(events.receivedLength == 3_000_000 && events.resumedAt == [Int64(offset)])
            // The rest was hashed when it came, but for what was written until the hash had caught up.
            #expect(reads.bytes >= offset && reads.bytes <= 3_000_000)
        }
    }

    @Test("A file that is all there is read, and nobody is asked")
    func allThere() async throws {
        try await serve([Answer("HTTP/1.1 200 OK", Self.head(), Self.content)]) { server, bench in
            let first = await bench.run(bench.spec(server.url("/f")))
            var spec = bench.spec(server.url("/f"), resume: first.checkpoint)
            spec.digest = Self.digest(of: Self.content)
            guard case .received(3_000_000, _, _, spec.digest)? = await bench.run(spec).outcome else {
                Issue.record("not received")
                return
            }
            #expect(server.stop().count == 1)
        }
    }

    @Test("Bytes on the disk that are wrong cost a second fetch, not the file")
    func spoiltDisk() async throws {
        let answers = [
            Answer("HTTP/1.1 200 OK", Self.head(), Self.content[..<100_000]), Self.rest(from: 100_000),
            Answer("HTTP/1.1 200 OK", Self.head(), Self.content),
        ]
        try await serve(answers) { server, bench in
            let digest = Self.digest(of: Self.content)
            let note = try await begin(server, bench, digest)
            let file = try bench.files.openAppendable(Bench.partial)
            try file.truncate(to: 99_999)
            try [Self.content[99_999] ^ 1].withUnsafeBytes { try file.append($0) }
            var spec = bench.spec(server.url("/f"), resume: note)
            spec.digest = digest
            let events = await bench.run(spec)
            #expect(events.receivedLength == 3_000_000 && events.resumedAt == [100_000, 0])
            #expect(
                events.contains { event in
                    if case .startedOver(3_000_000, let why) = event { why.contains("put together") } else { false }
                })
            #expect(try bench.note()?.isSecondTry == true)
            let content = try bench.content()
            #expect(content == Bytes(Self.content))
        }
    }

    @Test("Who asks for a stop between two answers is told with the second one whether it could stop from then on")
    func stopBetween() async throws {
        let answers = [
            Answer("HTTP/1.1 200 OK", Self.head(), Self.content[..<100_000]), Self.rest(from: 100_000),
            Answer("HTTP/1.1 200 OK", Self.head("Accept-Ranges: bytes"), Self.content),
        ]
        try await serve(answers) { server, bench in
            let digest = Self.digest(of: Self.content)
            let note = try await begin(server, bench, digest)
            let file = try bench.files.openAppendable(Bench.partial)
            try file.truncate(to: 99_999)
            try [Self.content[99_999] ^ 1].withUnsafeBytes { try file.append($0) }
            var spec = bench.spec(server.url("/f"), resume: note)
            spec.digest = digest
            let (stream, continuation) = AsyncStream.makeStream(of: TransferEvent.self)
            bench.engine.start(spec) { event in
                // On the engine's loop: the check of what came is under way, and the second request not answered.
                if case .gathered = event { bench.engine.stop("x") }
                continuation.yield(event)
                if case .ended = event { continuation.finish() }
            }
            var events: [TransferEvent] = []
            for await event in stream { events.append(event) }
            #expect(events.receivedLength == 3_000_000 && events.resumedAt == [100_000, 0])
            #expect(events.filter { $0 == .canStop(true) }.count == 2)
        }
    }

    @Test("A version without tag and date is gone on with by its declared digest")
    func unnamed() async throws {
        let length = "Content-Length: \(Self.content.count)"
        let answers = [
            Answer("HTTP/1.1 200 OK", [length], Self.content[..<100_000]),
            Answer(
                "HTTP/1.1 206 Partial Content",
                ["Content-Range: bytes 100000-2999999/3000000", "Content-Length: 2900000"], Self.content[100_000...]),
        ]
        try await serve(answers) { server, bench in
            let digest = Self.digest(of: Self.content)
            var spec = bench.spec(server.url("/f"), resume: try await begin(server, bench, digest))
            spec.digest = digest
            let events = await bench.run(spec)
            #expect(events.receivedLength == 3_000_000 && events.resumedAt == [100_000])
            let request = try #require(server.stop().last)
            #expect(request.contains("\r\nRange: bytes=100000-\r\n") && !request.contains("If-Range"))
        }
    }

    @Test("The digest of a part is that of the part", arguments: [true, false])
    func part(isRight: Bool) async throws {
        let digest = Self.digest(of: isRight ? Self.content[100_000...] : Self.content[...])
        let answers = [
            Answer("HTTP/1.1 200 OK", Self.head(), Self.content[..<100_000]),
            Self.rest(from: 100_000, Self.field("Content-Digest", digest)),
            Answer("HTTP/1.1 200 OK", Self.head(), Self.content),
        ]
        try await serve(answers) { server, bench in
            let note = try await begin(server, bench)
            let events = await bench.run(bench.spec(server.url("/f"), resume: note))
            #expect(events.receivedLength == 3_000_000)
            #expect(events.resumedAt == (isRight ? [100_000] : [100_000, 0]))
        }
    }

    @Test("A disk that cannot be read is told as such")
    func unreadable() async throws {
        let first = Answer("HTTP/1.1 200 OK", Self.head(), Self.content[..<100_000])
        try await serve([first, Self.rest(from: 100_000)], wrap: { FaultyTree($0, failReadWith: EIO) }) {
            server, bench in
            let digest = Self.digest(of: Self.content)
            var spec = bench.spec(server.url("/f"), resume: try await begin(server, bench, digest))
            spec.digest = digest
            let interruption = try #require(await bench.run(spec).interruption)
            #expect(interruption.kind == .storage && interruption.reason == .volume)
        }
    }

    @Test("A transfer can be cancelled while its file is read", arguments: 0..<10)
    func cancelled(round: Int) async throws {
        let first = Answer("HTTP/1.1 200 OK", Self.head(), Self.content[..<2_900_000])
        try await serve([first, Self.rest(from: 2_900_000)]) { server, bench in
            var spec = bench.spec(server.url("/f"), resume: try await begin(server, bench))
            spec.digest = Self.digest(of: Self.content)
            let events = await bench.run(spec) { event in
                if case .began = event { true } else { false }
            }
            #expect(events.outcome == nil || events.receivedLength != nil)
        }
    }
}
