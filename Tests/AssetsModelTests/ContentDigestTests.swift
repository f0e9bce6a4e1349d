// Digests of files: how they are written, sent, chosen, and what a wrong one leads to.
import AssetsModel
import Testing

@Suite("Digests in header fields")
struct DigestFieldTests {
    private static let one = Base64.encode([UInt8](repeating: 1, count: 32))
    private static let two = Base64.encode([UInt8](repeating: 2, count: 64))

    @Test(
        "A digest field is a dictionary of byte sequences",
        arguments: [
            ("sha-256=:\(one):", true), ("  sha-256=:\(one):", true), ("sha-256=:\(one):;x=1;y=\"a\\\"b,\";z", true),
            ("md5=:AA==:,sha-256=:\(one):", true), ("md5=:AA==: ,\t sha-256=:\(one):", true),
            ("sha-256=:AA==:, sha-256=:\(one):", true), ("*x-y.z_0=:AA==:;a=?1;b=:AA==:, sha-256=:\(one):", true),
            ("", false), ("sha-256", false), ("sha-256=", false), ("sha-256=\(one)", false), ("sha-256=:\(one)", false),
            ("SHA-256=:\(one):", false), ("sha-256=:AA==:", false), ("sha-256=:\(one): x", false),
            ("sha-256=:\(one):,", false), ("md5=5, sha-256=:\(one):", false), ("sha-256 =:\(one):", false),
            ("sha-256=:\(one.dropLast()):", false), ("sha-256=:\(one):;=1", false), ("sha-256=:\(one):;a=\"", false),
            ("sha-256=:\(one):;a=", false), ("é=:AA==:, sha-256=:\(one):", false),
        ])
    func dictionary(text: String, isRead: Bool) {
        #expect(DigestFields.ofWhole(head(200, ["repr-digest": text])) == (isRead ? digest(1) : nil))
        #expect(DigestFields.ofContent(head(200, ["CONTENT-DIGEST": text])) == (isRead ? digest(1) : nil))
    }

    @Test("SHA-256 goes before SHA-512, lines of one name are one dictionary, and nothing else is read")
    func choice() {
        let both = "sha-512=:\(Self.two):, sha-256=:\(Self.one):"
        #expect(DigestFields.ofWhole(head(200, ["Repr-Digest": both])) == digest(1))
        #expect(
            DigestFields.ofWhole(head(200, ["Repr-Digest": "sha-512=:\(Self.two):", "Repr-Digest": "md5=:AA==:"]))
                == digest(2, .sha512))
        #expect(DigestFields.ofWhole(head(200, ["Repr-Digest": "md5=:AA==:"])) == nil)
        #expect(DigestFields.ofWhole(head(200, ["Digest": "SHA-256=\(Self.one)"])) == nil)
    }

    @Test(
        "Amazon's checksum counts where it is one of all bytes",
        arguments: [
            (one, nil, true), (one, "FULL_OBJECT", true), (one, "COMPOSITE", false), ("\(one)-3", nil, false),
            ("AA==", nil, false), ("", nil, false),
        ])
    func amazon(text: String, type: String?, isRead: Bool) {
        var head = head(200, ["X-Amz-Checksum-Sha256": text])
        if let type { head.headers.append(HeaderField(name: "x-amz-checksum-type", value: type)) }
        #expect(DigestFields.ofObject(head) == (isRead ? digest(1) : nil))
    }

    @Test("Base64 is read in the one form in which it is written")
    func base64() {
        for count in 0..<20 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 89 &+ count) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
        for text in ["A", "AA", "AAA", "AB==", "AAB=", "=AAA", "A===", "====", "AA==AAAA", "AA-_", "AA A", "AAAA="] {
            #expect(Base64.decode(text) == nil, "\(text)")
        }
    }

    @Test("A digest has a text, and no other text is one")
    func text() {
        for digest in [digest(0xA5), digest(7, .sha512)] { #expect(ContentDigest(digest.text) == digest) }
        #expect(ContentDigest("sha-256=" + String(repeating: "A5", count: 32)) == digest(0xA5))
        for text in ["", "sha-256", "sha-256=", "sha-256=0", "md5=00", "sha-256=" + String(repeating: "é", count: 32)] {
            #expect(ContentDigest(text) == nil)
        }
        #expect(ContentDigest(.sha256, [1]) == nil)
        #expect(Hexadecimal.decode("0aFf") == [10, 255] && Hexadecimal.decode("0g") == nil)
    }
}

@Suite("What bytes must come to")
struct DigestCheckTests {
    /// The check that an answer leads to.
    private func check(
        _ answer: TransportHead, length: Int64 = 0, declared: UInt8? = nil
    ) -> TransferPlan.DigestCheck? {
        var plan = makePlan(length: length, resume: length > 0 ? note() : nil) {
            $0.digest = declared.map { digest($0) }
        }
        _ = plan.begin()
        return plan.head(answer).start?.check
    }

    private func sent(_ byte: UInt8, from offset: Int64 = 0) -> TransferPlan.DigestCheck {
        .init(expected: digest(byte), from: offset, isDeclared: false)
    }

    @Test("The app's word goes before the server's, and the whole before a part")
    func choice() {
        let three: KeyValuePairs = [
            "Repr-Digest": digestField(1), "Content-Digest": digestField(2),
            "x-amz-checksum-sha256": Base64.encode([UInt8](repeating: 3, count: 32)),
        ]
        #expect(check(head(200, three)) == sent(1))
        #expect(check(head(200, ["Content-Digest": digestField(2)])) == sent(2))
        #expect(
            check(head(200, ["x-amz-checksum-sha256": Base64.encode([UInt8](repeating: 3, count: 32))])) == sent(3))
        #expect(check(head(200)) == nil)
        let part: KeyValuePairs = ["Content-Range": "bytes 60-99/100", "ETag": etag, "Content-Digest": digestField(2)]
        #expect(check(head(206, part), length: 60) == sent(2, from: 60))
        #expect(
            check(head(206, part), length: 60, declared: 1)
                == .init(expected: digest(1), from: 0, isDeclared: true))
        var both = head(206, part)
        both.headers.append(HeaderField(name: "Repr-Digest", value: digestField(1)))
        #expect(check(both, length: 60) == sent(1))
        // Amazon's is of an object, not of its part.
        let amazon = head(
            206, ["Content-Range": "bytes 60-99/100", "ETag": etag, "x-amz-checksum-sha256": digestField(3)])
        #expect(check(amazon, length: 60) == nil)
    }

    @Test("What the server said of the whole is still known when the rest comes")
    func kept() throws {
        var first = makePlan()
        _ = first.begin()
        _ = first.head(head(200, ["Content-Length": "100", "ETag": etag, "Content-Digest": digestField(1)]))
        let resume = try #require(first.resumePoint(syncedOffset: 40))
        #expect(resume.digest == digest(1))
        var second = makePlan(length: 60, resume: resume)
        _ = second.begin()
        #expect(second.head(head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag])).start?.check == sent(1))
    }

    @Test("The part that an app asked for is compared with the digest of the content, not of the whole")
    func ownPart() {
        var plan = makePlan { $0.headers = [HeaderField(name: "Range", value: "bytes=10-19")] }
        _ = plan.begin()
        let answer = head(
            206,
            [
                "Content-Range": "bytes 10-19/100", "Content-Length": "10", "Repr-Digest": digestField(1),
                "Content-Digest": digestField(2),
            ])
        #expect(plan.head(answer).start?.check == sent(2))
    }

    /// A file of 100 bytes in one piece, or with 60 of them from before.
    private func received(
        from offset: Int64, declared: Bool, isSecondTry: Bool = false
    ) -> (plan: TransferPlan, action: TransferPlan.Action) {
        var resume = note(digest: declared ? nil : 1)
        resume.isSecondTry = isSecondTry
        var plan = makePlan(length: offset, resume: offset > 0 ? resume : nil) {
            $0.digest = declared ? digest(1) : nil
        }
        _ = plan.begin()
        if offset > 0 {
            _ = plan.head(head(206, ["Content-Range": "bytes \(offset)-99/100", "ETag": etag]))
        } else {
            _ = plan.head(head(200, ["Content-Length": "100", "ETag": etag, "Repr-Digest": digestField(1)]))
        }
        _ = plan.body(100 - offset)
        let action = plan.end(nil)
        return (plan, action)
    }

    @Test("Bytes that come to what was said are a file", arguments: [0, 60], [true, false])
    func right(offset: Int64, declared: Bool) {
        var (plan, action) = received(from: offset, declared: declared)
        #expect(action == .check(.init(expected: digest(1), from: 0, isDeclared: declared), length: 100))
        #expect(plan.confirmedDigest == nil)
        // What else comes from the server does not matter any more.
        #expect(plan.body(1) == .ignore && plan.end(nil) == .ignore)
        #expect(plan.checked(digest(1)) == .complete(length: 100))
        #expect(plan.confirmedDigest == digest(1))
    }

    @Test("What came in one piece and is wrong fails, with both values", arguments: [true, false])
    func wrong(declared: Bool) throws {
        var (plan, _) = received(from: 0, declared: declared)
        let refusal = try #require(plan.checked(digest(2)).refusal)
        #expect(refusal.reason == .digest)
        #expect(refusal.failure.reason.contains(digest(1).hexadecimal))
        #expect(refusal.failure.reason.contains(digest(2).hexadecimal))
        #expect(refusal.failure.reason.contains(declared ? "the app declared" : "the server announced"))
    }

    @Test("What was put together from several answers and is wrong is fetched once more, and then no more")
    func wrongTogether() throws {
        var (plan, _) = received(from: 60, declared: true)
        #expect(plan.checked(digest(2)).request?.from == 0)
        _ = plan.head(head(200, ["Content-Length": "100", "ETag": etag]))
        #expect(plan.whyStartedOver?.contains(digest(2).hexadecimal) == true)
        #expect(plan.resumePoint(syncedOffset: 0)?.isSecondTry == true)
        _ = plan.body(100)
        _ = plan.end(nil)
        #expect(plan.checked(digest(2)).refusal?.reason == .digest)
        // Nor in another attempt that goes on with the second file.
        var (later, _) = received(from: 60, declared: true, isSecondTry: true)
        #expect(later.checked(digest(2)).refusal?.reason == .digest)
    }

    @Test("A file that is all there is checked before it counts")
    func allThere() {
        var plan = makePlan(length: 100, resume: note(synced: 100)) { $0.digest = digest(1) }
        #expect(plan.begin() == .check(.init(expected: digest(1), from: 0, isDeclared: true), length: 100))
        #expect(plan.checked(digest(1)) == .complete(length: 100))
    }

    @Test("A server that names another digest than the app is not listened to any longer")
    func contradiction() throws {
        var plan = makePlan { $0.digest = digest(1) }
        _ = plan.begin()
        let refusal = try #require(plan.head(head(200, ["Repr-Digest": digestField(2)])).refusal)
        #expect(refusal.reason == .digest && refusal.failure.reason.contains(digest(2).hexadecimal))
        // Two algorithms cannot be compared.
        #expect(check(head(200, ["Repr-Digest": digestField(2, .sha512)]), declared: 1)?.isDeclared == true)
    }
}
