// Going on with a file that is partly there: every answer that servers give, right or wrong.
import AssetsModel
import Testing

@Suite("What an answer to a request for the rest means")
struct TransferPlanResumeTests {
    enum Outcome: Equatable, Sendable {
        case goesOn
        case takesWhole
        /// The whole is asked for.
        case asksAgain
        /// The rest is asked for without If-Range.
        case asksBare
        case complete
        case interrupted
    }
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var head: TransportHead
        var resume: ResumePoint = note()
        var outcome: Outcome
    }

    static let cases: [Case] = [
        Case(
            testDescription: "the rest", head: head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag]),
            outcome: .goesOn),
        Case(
            testDescription: "a piece of the rest",
            head: head(206, ["Content-Range": "bytes 60-69/100", "ETag": etag]),
            outcome: .goesOn),
        Case(
            testDescription: "the rest of an unnamed whole",
            head: head(206, ["Content-Range": "bytes 60-99/*", "ETag": etag]), outcome: .goesOn),
        Case(
            testDescription: "the rest of a whole that was unknown",
            head: head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag]), resume: note(total: 0),
            outcome: .goesOn),
        Case(testDescription: "no Content-Range", head: head(206, ["ETag": etag]), outcome: .asksAgain),
        Case(
            testDescription: "another place", head: head(206, ["Content-Range": "bytes 0-99/100", "ETag": etag]),
            outcome: .asksAgain),
        Case(
            testDescription: "another whole", head: head(206, ["Content-Range": "bytes 60-119/120", "ETag": etag]),
            outcome: .asksAgain),
        Case(
            testDescription: "another tag", head: head(206, ["Content-Range": "bytes 60-99/100", "ETag": "\"v2\""]),
            outcome: .asksAgain),
        Case(
            testDescription: "a weak tag", head: head(206, ["Content-Range": "bytes 60-99/100", "ETag": "W/\"v1\""]),
            outcome: .asksAgain),
        Case(
            testDescription: "no tag", head: head(206, ["Content-Range": "bytes 60-99/100"]), outcome: .asksAgain),
        Case(
            testDescription: "two ranges",
            head: head(
                206, ["Content-Range": "bytes 60-99/100", "Content-Range": "bytes 60-98/100", "ETag": etag]),
            outcome: .asksAgain),
        Case(
            testDescription: "unknown on both sides",
            head: head(206, ["Content-Range": "bytes 60-99/*", "ETag": etag]), resume: note(total: 0),
            outcome: .asksAgain),
        Case(
            testDescription: "the same date",
            head: head(206, ["Content-Range": "bytes 60-99/100", "Last-Modified": lastModified]),
            resume: note(etag: nil, lastModified: lastModified), outcome: .goesOn),
        Case(
            testDescription: "a date left out", head: head(206, ["Content-Range": "bytes 60-99/100"]),
            resume: note(etag: nil, lastModified: lastModified), outcome: .goesOn),
        Case(
            testDescription: "another date",
            head: head(206, ["Content-Range": "bytes 60-99/100", "Last-Modified": date]),
            resume: note(etag: nil, lastModified: lastModified), outcome: .asksAgain),
        Case(
            testDescription: "the whole of the same version",
            head: head(200, ["Content-Length": "100", "ETag": etag]), outcome: .takesWhole),
        Case(
            testDescription: "the whole of the same version from a server that offers parts",
            head: head(200, ["Content-Length": "100", "ETag": etag, "Accept-Ranges": "bytes"]), outcome: .asksBare),
        Case(
            testDescription: "the same, of the date",
            head: head(200, ["Content-Length": "100", "Last-Modified": lastModified, "accept-ranges": "Bytes"]),
            resume: note(etag: nil, lastModified: lastModified), outcome: .asksBare),
        Case(
            testDescription: "the whole of the same version from a server that offers none",
            head: head(200, ["Content-Length": "100", "ETag": etag, "Accept-Ranges": "none"]), outcome: .takesWhole),
        Case(
            testDescription: "another length of the same version",
            head: head(200, ["Content-Length": "99", "ETag": etag, "Accept-Ranges": "bytes"]), outcome: .takesWhole),
        Case(
            testDescription: "the whole of another version that could come in parts",
            head: head(200, ["Content-Length": "100", "ETag": "\"v2\"", "Accept-Ranges": "bytes"]),
            outcome: .takesWhole),
        Case(
            testDescription: "lengths that contradict each other",
            head: head(200, ["Content-Length": "100", "Content-Length": "101", "ETag": etag]), outcome: .interrupted),
        Case(
            testDescription: "a length that is none", head: head(200, ["Content-Length": "-1", "ETag": etag]),
            outcome: .interrupted),
        Case(
            testDescription: "several parts in one body",
            head: head(206, ["Content-Type": "multipart/byteranges; boundary=x", "ETag": etag]), outcome: .asksAgain),
        Case(
            testDescription: "several parts, and yet a range",
            head: head(
                206,
                ["Content-Type": "multipart/byteranges", "Content-Range": "bytes 60-99/100", "ETag": etag]),
            outcome: .asksAgain),
        Case(
            testDescription: "a packed part",
            head: head(206, ["Content-Encoding": "gzip", "Content-Range": "bytes 60-99/100", "ETag": etag]),
            outcome: .asksAgain),
        Case(
            testDescription: "a part as it is",
            head: head(206, ["Content-Encoding": "identity", "Content-Range": "bytes 60-99/100", "ETag": etag]),
            outcome: .goesOn),
        Case(
            testDescription: "a length that is not the range's",
            head: head(206, ["Content-Length": "30", "Content-Range": "bytes 60-99/100", "ETag": etag]),
            outcome: .asksAgain),
        Case(
            testDescription: "a digest of another whole",
            head: head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag, "Repr-Digest": digestField(2)]),
            resume: note(digest: 1), outcome: .asksAgain),
        Case(
            testDescription: "nothing but the digest confirms the version",
            head: head(206, ["Content-Range": "bytes 60-99/100", "Repr-Digest": digestField(1)]),
            resume: note(etag: nil, digest: 1), outcome: .goesOn),
        Case(
            testDescription: "not even the digest confirms the version",
            head: head(206, ["Content-Range": "bytes 60-99/100"]), resume: note(etag: nil, digest: 1),
            outcome: .asksAgain),
        Case(
            testDescription: "the whole of another version",
            head: head(200, ["Content-Length": "7", "ETag": "\"v2\""]), outcome: .takesWhole),
        Case(
            testDescription: "nothing left of the same",
            head: head(416, ["Content-Range": "bytes */60", "ETag": etag]), resume: note(total: 0), outcome: .complete),
        Case(
            testDescription: "nothing left of something longer",
            head: head(416, ["Content-Range": "bytes */50", "ETag": etag]), resume: note(total: 0),
            outcome: .asksAgain),
        Case(
            testDescription: "nothing left of another version",
            head: head(416, ["Content-Range": "bytes */60", "ETag": "\"v2\""]), resume: note(total: 0),
            outcome: .asksAgain),
        Case(
            testDescription: "nothing left of who knows what", head: head(416), outcome: .asksAgain),
    ]

    @Test("Two versions are never spliced", arguments: cases)
    func answer(_ row: Case) throws {
        let label = row.resume.etag ?? row.resume.lastModified ?? row.resume.digest?.text
        var plan = makePlan(length: 60, resume: row.resume)
        try #require(plan.begin().request?.from == 60)
        let action = plan.head(row.head)
        switch row.outcome {
        case .goesOn:
            let start = try #require(action.start)
            #expect(start.offset == 60 && start.label == label && start.total == 100)
        case .takesWhole:
            #expect(action.start?.offset == 0)
        case .asksAgain:
            let again = try #require(action.request)
            #expect(again.value("Range") == nil && again.value("If-Range") == nil)
        case .asksBare:
            let again = try #require(action.request)
            #expect(again.from == 60 && again.value("If-Range") == nil)
        case .complete:
            #expect(action == .complete(length: 60))
        case .interrupted:
            #expect(action.interruption?.kind == .broken)
        }
    }

    /// The answers that may follow when the rest was asked for without If-Range.
    @Test("A server that drops Range beside If-Range is asked once without it, and must then name the version")
    func bareRange() throws {
        let whole = head(200, ["Content-Length": "100", "ETag": etag, "Accept-Ranges": "bytes"])
        func answer(_ second: TransportHead) throws -> TransferPlan.Action {
            var plan = makePlan(length: 60, resume: note())
            _ = plan.begin()
            try #require(plan.head(whole).request?.from == 60)
            return plan.head(second)
        }
        let range = "bytes 60-99/100"
        #expect(try answer(head(206, ["Content-Range": range, "ETag": etag])).start?.offset == 60)
        for other in ["\"v2\"", "W/\"v1\""] {
            #expect(try answer(head(206, ["Content-Range": range, "ETag": other])).request?.from == 0)
        }
        #expect(try answer(head(206, ["Content-Range": range])).request?.from == 0)
        // There is no third request for the rest.
        #expect(try answer(whole).start?.offset == 0)
        #expect(try answer(head(416)).request?.from == 0)
    }

    @Test("Without If-Range a date must be told")
    func bareDate() throws {
        var plan = makePlan(length: 60, resume: note(etag: nil, lastModified: lastModified))
        _ = plan.begin()
        let whole = ["Content-Length": "100", "Last-Modified": lastModified, "Accept-Ranges": "bytes"]
        _ = plan.head(TransportHead(status: 200, headers: whole.map { HeaderField(name: $0.key, value: $0.value) }))
        #expect(plan.head(head(206, ["Content-Range": "bytes 60-99/100"])).request?.from == 0)
    }

    @Test("Where all bytes of the noted version are there nobody is asked", arguments: [here, "boot:2"])
    func allThere(epoch: String) {
        var plan = makePlan(length: 100, resume: note(synced: 100, epoch: epoch))
        #expect(plan.begin() == .complete(length: 100))
        #expect(plan.resumePoint(syncedOffset: 100) == note(synced: 100))
    }

    @Test("A file that is all there and has the wrong size is refused without a request")
    func allThereOfWrongSize() {
        var plan = makePlan(length: 100, resume: note(synced: 100)) {
            $0.expectedSize = 99
            $0.sizeMustMatch = true
        }
        #expect(plan.begin().refusal?.reason == .size)
    }

    @Test("More bytes than the part's end are not taken, although the file is longer")
    func beyondThePart() {
        var plan = makePlan(length: 60, resume: note())
        _ = plan.begin()
        _ = plan.head(head(206, ["Content-Range": "bytes 60-69/100", "ETag": etag]))
        #expect(plan.body(10) == .append)
        var short = plan
        #expect(short.end(nil).interruption?.failure.code == URLErrorCode.networkConnectionLost)
        #expect(plan.body(1).interruption?.kind == .broken)
    }

    @Test("Bytes without tag and date are gone on with where the app has declared what they must come to")
    func declaredDigest() throws {
        let resume = note(etag: nil)
        func begin() throws -> TransferPlan {
            var plan = makePlan(length: 60, resume: resume) { $0.digest = digest(1) }
            let hop = try #require(plan.begin().request)
            #expect(hop.from == 60 && hop.value("If-Range") == nil)
            return plan
        }
        var plan = try begin()
        let start = try #require(plan.head(head(206, ["Content-Range": "bytes 60-99/100"])).start)
        #expect(start.offset == 60 && start.label == digest(1).text)
        #expect(start.check == TransferPlan.DigestCheck(expected: digest(1), from: 0, isDeclared: true))
        var other = try begin()
        #expect(other.head(head(206, ["Content-Range": "bytes 60-100/101"])).request?.from == 0)
        var whole = try begin()
        #expect(whole.head(head(200, ["Content-Length": "100"])).start?.offset == 0)
    }

    @Test("A digest alone does not make bytes of unknown length a version")
    func declaredDigestWithoutTotal() throws {
        var plan = makePlan(length: 60, resume: note(etag: nil, total: 0)) {
            $0.digest = digest(1)
        }
        #expect(try #require(plan.begin().request).from == 0)
    }

    @Test("A tag that nginx made of a time of this very second names no version")
    func youngTag() throws {
        let second = try #require(HTTPDate.seconds(date))
        let tag = "\"\(String(second, radix: 16))-64\""
        func label(_ modified: String, _ sent: String, tag: String = tag) -> String? {
            var plan = makePlan()
            _ = plan.begin()
            return plan.head(head(200, ["ETag": tag, "Last-Modified": modified, "Date": sent])).start?.label
        }
        #expect(label(date, date) == nil)
        #expect(label(date, "Sun, 06 Nov 1994 08:59:38 GMT") == tag)
        // With something else in it, as with the inode and nanoseconds: no such tag.
        let longer = "\"5-\(String(second, radix: 16))-64\""
        #expect(label(date, date, tag: longer) == longer)
        // Of another time: no such tag.
        #expect(label(lastModified, lastModified) == tag)
    }

    @Test(
        "A weak tag names no version; a date beside it does",
        arguments: [("W/\"v1\"", true), ("W/\"v1\"", false), ("v1", false), ("\"v\u{7f}\"", false), ("\"", false)])
    func weakTag(tag: String, hasDate: Bool) {
        var plan = makePlan()
        _ = plan.begin()
        var answer = head(200, ["ETag": tag, "Date": date])
        if hasDate { answer.headers.append(HeaderField(name: "Last-Modified", value: lastModified)) }
        #expect(plan.head(answer).start?.label == (hasDate ? lastModified : nil))
    }

    @Test("Why bytes are fetched again is told")
    func reasons() {
        func why(_ resume: ResumePoint?, _ answers: TransportHead...) -> String? {
            var plan = makePlan(length: 60, resume: resume)
            _ = plan.begin()
            for answer in answers { _ = plan.head(answer) }
            return plan.whyStartedOver
        }
        let other = head(200, ["Content-Length": "100", "ETag": "\"v2\""])
        #expect(why(nil, other) == "nothing names the version of the bytes that are there")
        #expect(why(note(synced: 70), other) == "the bytes on the disk are not those that were noted")
        #expect(why(note(), other) == "the server has another version of the file")
        #expect(why(note(), head(200, ["ETag": etag])) == "the server sends no parts of the file")
        #expect(why(note(), head(206, ["ETag": etag]), other) == "the server sent another part than it was asked for")
        #expect(why(note(), head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag])) == nil)
    }

    @Test("A part that nobody asked for is not taken")
    func unaskedPart() {
        var plan = makePlan()
        _ = plan.begin()
        #expect(plan.head(head(206, ["Content-Range": "bytes 0-9/100"])).interruption?.kind == .broken)
    }

    @Test("The part that the app asked for is its file")
    func ownPart() {
        var plan = makePlan { $0.headers = [HeaderField(name: "Range", value: "bytes=10-19")] }
        #expect(plan.begin().request?.value("Range") == "bytes=10-19")
        #expect(
            plan.head(head(206, ["Content-Range": "bytes 10-19/100", "Content-Length": "10"])).start
                == .init(offset: 0, total: 10, etag: nil, lastModified: nil))
        #expect(plan.body(10) == .append)
        #expect(plan.end(nil) == .complete(length: 10))
    }
}
