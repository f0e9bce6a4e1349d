// The rules of one attempt, against tables of answers.
import AssetsModel
import Testing

@Suite("What is asked for")
struct TransferPlanRequestTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var length: Int64 = 60
        var otherTag: String?
        var resume: ResumePoint?
        var keeps: Int64
        var validator: String? = etag
    }

    static let cases: [Case] = [
        Case(testDescription: "a new file", length: 0, resume: nil, keeps: 0),
        Case(testDescription: "bytes without a note", resume: nil, keeps: 0),
        Case(testDescription: "the same epoch: the length is trusted", resume: note(), keeps: 60),
        Case(testDescription: "another epoch: only what was synced", resume: note(epoch: "boot:2"), keeps: 40),
        Case(testDescription: "another epoch, nothing synced", resume: note(synced: 0, epoch: "boot:2"), keeps: 0),
        Case(testDescription: "fewer bytes than were synced", length: 30, resume: note(), keeps: 0),
        Case(testDescription: "no validator", resume: note(etag: nil), keeps: 0),
        Case(
            testDescription: "a date as validator",
            resume: note(etag: nil, lastModified: lastModified), keeps: 60, validator: lastModified),
        Case(
            testDescription: "a tag goes before a date", resume: note(lastModified: lastModified), keeps: 60),
        Case(
            testDescription: "the file holds another version than the note", otherTag: "\"v2\"", resume: note(),
            keeps: 0),
        Case(testDescription: "fewer bytes than were synced of all", length: 99, resume: note(synced: 100), keeps: 0),
        Case(testDescription: "a note beyond the whole", length: 100, resume: note(synced: 101), keeps: 0),
        Case(testDescription: "more bytes than the whole", length: 101, resume: note(), keeps: 0),
        Case(testDescription: "an unknown whole", length: 60, resume: note(total: 0), keeps: 60),
        Case(testDescription: "a spoilt note", resume: note(total: -1, synced: -5), keeps: 0),
    ]

    @Test("A request goes on where the bytes are surely those of one version", arguments: cases)
    func range(_ row: Case) throws {
        var plan = makePlan(length: row.length, otherTag: row.otherTag, resume: row.resume)
        let hop = try #require(plan.begin().request)
        #expect(hop.from == row.keeps)
        #expect(hop.value("Range") == (row.keeps > 0 ? "bytes=\(row.keeps)-" : nil))
        #expect(hop.value("If-Range") == (row.keeps > 0 ? row.validator : nil))
        #expect(hop.value("Accept-Encoding") == "identity")
    }

    struct Beside: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var length: Int64 = 60
        /// In the row.
        var row: ResumePoint?
        /// Beside the bytes.
        var note: ResumePoint?
        var stale: Int64 = 0
        var keeps: Int64
        var validator: String? = etag
    }

    static let besides: [Beside] = [
        Beside(testDescription: "no row yet: a kill before the first sync", note: note(synced: 0), keeps: 60),
        Beside(testDescription: "a row only", row: note(), keeps: 0),
        Beside(testDescription: "neither", keeps: 0),
        Beside(testDescription: "no row yet: a power cut", note: note(synced: 0, epoch: "boot:0"), keeps: 0),
        Beside(
            testDescription: "a row from before the power cut", row: note(epoch: "boot:0"), note: note(synced: 0),
            keeps: 60),
        Beside(
            testDescription: "a row of the version before", row: note(etag: "\"v0\""), note: note(synced: 0), keeps: 60),
        Beside(
            testDescription: "a row of the version before, and a power cut", row: note(etag: "\"v0\""),
            note: note(synced: 0, epoch: "boot:0"), keeps: 0),
        Beside(
            testDescription: "another row after a power cut, of the same version", row: note(epoch: "boot:0"),
            note: note(epoch: "boot:0"), keeps: 40),
        Beside(
            testDescription: "the file has started over since the row, and a power cut", row: note(epoch: "boot:0"),
            note: note(epoch: "boot:0"), stale: 40, keeps: 0),
        Beside(
            testDescription: "the row is of after the start, and a power cut", row: note(epoch: "boot:0"),
            note: note(epoch: "boot:0"), stale: 39, keeps: 40),
        Beside(
            testDescription: "the file has started over since the row", length: 30, row: note(), note: note(),
            stale: 40,
            keeps: 30),
        Beside(
            testDescription: "nothing could be put beside the bytes in this epoch", row: note(),
            note: note(epoch: "boot:0"), keeps: 60),
        Beside(
            testDescription: "fewer bytes than were synced", length: 30, row: note(), note: note(synced: 0), keeps: 0),
        Beside(testDescription: "more bytes than the whole", length: 101, note: note(synced: 0), keeps: 0),
        Beside(testDescription: "a note without a version", note: note(etag: nil, synced: 0), keeps: 0),
        Beside(
            testDescription: "a date as validator", note: note(etag: nil, lastModified: lastModified, synced: 0),
            keeps: 60,
            validator: lastModified),
    ]

    @Test(
        "What stands beside the bytes counts more than a row in the epoch in which it was written", arguments: besides)
    func beside(_ row: Beside) throws {
        var order = TransferPlan.Order(url: assetURL)
        order.resume = row.row
        let beside = row.note.map { PartialNote($0, staleOffset: row.stale) }
        var plan = TransferPlan(order, partial: .init(length: row.length, note: beside, storageEpoch: here))
        let hop = try #require(plan.begin().request)
        #expect(hop.from == row.keeps)
        #expect(hop.value("If-Range") == (row.keeps > 0 ? row.validator : nil))
    }

    @Test("A file that has all its bytes needs no row and no request")
    func wholeWithoutRow() {
        var plan = TransferPlan(
            .init(url: assetURL), partial: .init(length: 100, note: PartialNote(note()), storageEpoch: here))
        #expect(plan.begin() == .complete(length: 100))
    }

    @Test("What is put beside bytes that start over says which rows no longer count")
    func staleRows() {
        func stale(_ length: Int64, _ row: ResumePoint?, _ answer: TransportHead, after synced: Int64 = 0) -> Int64? {
            var plan = makePlan(length: length, resume: row)
            _ = plan.begin()
            _ = plan.head(answer)
            return plan.note(after: synced)?.staleOffset
        }
        let whole = head(200, ["Content-Length": "100", "ETag": etag])
        #expect(stale(0, nil, whole) == 0)
        #expect(stale(60, note(), whole) == 40)
        #expect(stale(60, note(), whole, after: 60) == 60)
        #expect(stale(60, note(), head(200, ["Content-Length": "100", "ETag": "\"v2\""])) == 0)
        #expect(stale(60, note(), head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag])) == 0)
        #expect(stale(60, note(), head(200, ["Content-Length": "100"])) == nil)
    }

    @Test("The second try that a note tells of is the last")
    func secondTry() {
        var point = note(synced: 0, digest: 1)
        point.isSecondTry = true
        var plan = TransferPlan(
            .init(url: assetURL), partial: .init(length: 100, note: PartialNote(point), storageEpoch: here))
        guard case .check = plan.begin() else {
            Issue.record("\(plan)")
            return
        }
        #expect(plan.checked(digest(2)).refusal?.reason == .digest)
    }

    @Test(
        "A request that cannot be made twice never asks for a rest",
        arguments: [
            ("POST", false, nil), ("GET", true, nil), ("GET", false, "Range"), ("GET", false, "if-match"),
            ("GET", false, "If-Range"),
        ])
    func notResumable(method: String, hasBody: Bool, field: String?) throws {
        var plan = makePlan(length: 60, resume: note()) { order in
            order.method = method
            order.hasBody = hasBody
            if let field { order.headers = [HeaderField(name: field, value: "x")] }
        }
        let hop = try #require(plan.begin().request)
        #expect(hop.headers.contains { $0.value == "bytes=60-" } == false)
        _ = plan.head(head(200, ["ETag": etag]))
        #expect(plan.resumePoint(syncedOffset: 0) == nil)
    }

    @Test("Fields of the connection are not the app's to set")
    func ownFields() throws {
        var plan = makePlan { order in
            order.headers = [
                HeaderField(name: "host", value: "other"), HeaderField(name: "Content-Length", value: "5"),
                HeaderField(name: "accept-encoding", value: "gzip"), HeaderField(name: "X-Key", value: "k"),
            ]
        }
        let hop = try #require(plan.begin().request)
        #expect(hop.headers.map(\.name) == ["X-Key", "Accept-Encoding"])
    }

    @Test(
        "What cannot be asked for is refused",
        arguments: [
            ("http://a.example/", "GET", "X", "v"), ("ftp://a.example/", "GET", "X", "v"), ("/file", "GET", "X", "v"),
            ("https://a.example/", "HEAD", "X", "v"), ("https://a.example/", "GE T", "X", "v"),
            ("https://a.example/", "GET", "X Y", "v"), ("https://a.example/", "GET", "X", "v\r\nEvil: 1"),
        ])
    func refused(url: String, method: String, name: String, value: String) {
        var plan = makePlan { order in
            order.url = url
            order.method = method
            order.headers = [HeaderField(name: name, value: value)]
        }
        #expect(plan.begin().refusal?.reason == .invalid)
    }

    @Test("Plain http goes to this machine only, and only where it is allowed")
    func loopback() {
        var allowed = makePlan {
            $0.url = "http://127.0.0.1:8080/f"
            $0.allowsLoopbackHTTP = true
        }
        #expect(allowed.begin().request?.allowsHTTP == true)
        var elsewhere = makePlan {
            $0.url = "http://a.example/f"
            $0.allowsLoopbackHTTP = true
        }
        #expect(elsewhere.begin().refusal?.failure.code == URLErrorCode.requiresSecureConnection)
    }
}

@Suite("Bytes and the end")
struct TransferPlanBodyTests {
    private func taking(
        _ length: Int64?, _ change: (inout TransferPlan.Order) -> Void = { _ in }
    ) -> (TransferPlan, TransferPlan.Action) {
        var plan = makePlan(resume: nil, change)
        _ = plan.begin()
        let action = plan.head(length.map { head(200, ["Content-Length": "\($0)"]) } ?? head(200))
        return (plan, action)
    }

    @Test("All announced bytes make a file, fewer an interruption")
    func length() {
        var (plan, _) = taking(100)
        #expect(plan.body(60) == .append)
        var short = plan
        #expect(short.end(nil).interruption?.hasAdvanced == true)
        #expect(plan.body(40) == .append)
        #expect(plan.end(nil) == .complete(length: 100))
    }

    @Test("Bytes that come again bring nobody further", arguments: [(100, false), (101, true), (99, false)])
    func again(count: Int64, hasAdvanced: Bool) {
        var plan = makePlan(length: 100)
        _ = plan.begin()
        #expect(plan.head(head(200, ["Content-Length": "500"])).start?.offset == 0)
        #expect(plan.body(count) == .append)
        #expect(plan.end(nil).interruption?.hasAdvanced == hasAdvanced)
    }

    @Test("Bytes behind those that are gone on with are new")
    func goesOn() {
        var plan = makePlan(length: 40, resume: note(synced: 40))
        _ = plan.begin()
        let part = head(206, ["Content-Range": "bytes 40-99/100", "Content-Length": "60", "ETag": etag])
        #expect(plan.head(part).start?.offset == 40)
        #expect(plan.body(1) == .append)
        #expect(plan.end(nil).interruption?.hasAdvanced == true)
    }

    @Test("More bytes than announced are not taken")
    func tooMany() {
        var (plan, _) = taking(100)
        #expect(plan.body(101).interruption?.kind == .broken)
        #expect(plan.body(1) == .ignore)
    }

    @Test(
        "A size that must match is checked as soon as it is known", arguments: [(99, true), (100, false), (101, true)])
    func mustMatch(length: Int64, isRefused: Bool) {
        let (_, action) = taking(length) {
            $0.expectedSize = 100
            $0.sizeMustMatch = true
        }
        #expect((action.refusal?.reason == .size) == isRefused)
        let (_, other) = taking(length) { $0.expectedSize = 100 }
        #expect(other.start != nil)
    }

    @Test("A size that the server does not tell is checked at the end")
    func mustMatchLate() {
        var (plan, _) = taking(nil) {
            $0.expectedSize = 100
            $0.sizeMustMatch = true
        }
        #expect(plan.body(99) == .append)
        var short = plan
        #expect(short.end(nil).refusal?.reason == .size)
        var long = plan
        #expect(long.body(2).refusal?.reason == .size)
        #expect(plan.body(1) == .append)
        #expect(plan.end(nil) == .complete(length: 100))
    }

    @Test("An allowance ends a transfer at the head or at the byte that exceeds it")
    func limit() {
        let (_, known) = taking(101) { $0.sizeLimit = 100 }
        #expect(known.refusal?.failure.code == 203 && known.refusal?.failure.domain == .assets)
        var (plan, unknown) = taking(nil) { $0.sizeLimit = 100 }
        #expect(unknown.start != nil)
        #expect(plan.body(100) == .append)
        let exceeded = plan.body(1).refusal
        #expect(exceeded?.reason == .allowance && exceeded?.failure.code == 204)
    }

    @Test("Counts that no file has do not trap")
    func hugeCounts() {
        var (plan, _) = taking(nil)
        #expect(plan.body(.max) == .append)
        #expect(plan.body(.max).interruption != nil)
    }

    @Test("A body whose end shows in another way has no length")
    func chunked() {
        var plan = makePlan()
        _ = plan.begin()
        let start = plan.head(head(200, ["Content-Length": "5", "transfer-encoding": "chunked"])).start
        #expect(start?.total == 0)
    }

    @Test("A note names the version and what is safe of it")
    func resumePoint() {
        var plan = makePlan()
        _ = plan.begin()
        #expect(plan.resumePoint(syncedOffset: 0) == nil)
        _ = plan.head(head(200, ["Content-Length": "100", "ETag": etag, "Last-Modified": lastModified, "Date": date]))
        #expect(plan.resumePoint(syncedOffset: 7) == note(lastModified: lastModified, synced: 7))
    }

    @Test("A date younger than a second names no version")
    func youngDate() {
        var plan = makePlan()
        _ = plan.begin()
        _ = plan.head(head(200, ["Last-Modified": date, "Date": date]))
        #expect(plan.resumePoint(syncedOffset: 0) == nil)
    }

    struct Failure: Sendable {
        var kind: TransportFailure.Kind
        var becomes: Interruption.Kind
        var reason: Reason
    }
    @Test(
        "Every failure of a transport is an interruption of its kind",
        arguments: [
            Failure(kind: .resolve, becomes: .unreachable, reason: .network),
            Failure(kind: .connect, becomes: .unreachable, reason: .network),
            Failure(kind: .tls, becomes: .unreachable, reason: .network),
            Failure(kind: .certificate, becomes: .unreachable, reason: .certificate),
            Failure(kind: .proxy, becomes: .unreachable, reason: .proxy),
            Failure(kind: .memory, becomes: .broken, reason: .memory),
            Failure(kind: .timeout, becomes: .unreachable, reason: .network),
            Failure(kind: .reset, becomes: .broken, reason: .network),
            Failure(kind: .partial, becomes: .broken, reason: .network),
            Failure(kind: .stall, becomes: .broken, reason: .stall),
            Failure(kind: .protocol, becomes: .broken, reason: .http),
            Failure(kind: .cancelled, becomes: .broken, reason: .network),
            Failure(kind: .other, becomes: .broken, reason: .network),
        ])
    func failure(_ row: Failure) {
        let failure = TransportFailure(kind: row.kind, code: -1, text: "text")
        var (plan, _) = taking(100)
        _ = plan.body(1)
        let later = plan.end(failure).interruption
        #expect(later?.kind == row.becomes && later?.reason == row.reason && later?.hasAdvanced == true)
        var early = TransferPlan(.init(url: assetURL), partial: .init(length: 0, note: nil, storageEpoch: here))
        _ = early.begin()
        #expect(early.end(failure).interruption?.hasAdvanced == false)
    }
}

@Suite("Answers without a file")
struct TransferPlanStatusTests {
    private func answer(_ head: TransportHead) -> TransferPlan.Action {
        var plan = makePlan()
        _ = plan.begin()
        return plan.head(head)
    }

    @Test(
        "A status that will not change is final",
        arguments: [
            (400, -1011), (401, -1013), (403, -1102), (404, -1100), (410, -1100), (416, -1011), (304, -1011),
            (204, -1011), (201, -1011), (451, -1011),
        ])
    func final(status: Int, code: Int) {
        #expect(answer(head(status)).refusal?.failure.code == code)
    }

    @Test("A status that may change is not", arguments: [408, 425, 429, 500, 502, 503, 504, 599])
    func passing(status: Int) {
        #expect(answer(head(status)).interruption?.kind == .server)
    }

    @Test(
        "Retry-After is seconds or a date, within bounds",
        arguments: [
            ("7", Duration.seconds(7)), ("0", .zero), ("100000000000", .seconds(3600)),
            (date, .seconds(0)), ("Sun, 06 Nov 1994 09:00:37 GMT", .seconds(60)), (lastModified, .zero),
            ("soon", nil), ("-5", nil), ("", nil), ("99999999999999999999", nil),
        ])
    func retryAfter(text: String, delay: Duration?) {
        #expect(answer(head(503, ["Retry-After": text, "Date": date])).interruption?.retryAfter == delay)
    }
}

@Suite("Redirects")
struct TransferPlanRedirectTests {
    private func redirect(
        _ status: Int = 302, to location: String, _ change: (inout TransferPlan.Order) -> Void = { _ in }
    ) -> TransferPlan.Action {
        var plan = makePlan(length: 60, resume: note(), change)
        _ = plan.begin()
        return plan.head(head(status, ["Location": location]))
    }

    @Test(
        "A redirect is followed to where it points",
        arguments: [
            ("https://b.example/x", "https://b.example/x"), ("/x?y=1", "https://a.example/x?y=1"),
            ("other", "https://a.example/other"), ("//b.example", "https://b.example/"),
            ("HTTPS://B.example:443/x", "https://b.example/x"), ("?q", "https://a.example/file?q"),
            ("../../x", "https://a.example/x"), ("/a b", "https://a.example/a%20b"),
            ("https://user:secret@b.example/x#part", "https://b.example/x"),
        ])
    func follows(location: String, url: String) throws {
        let hop = try #require(redirect(to: location).request)
        #expect(hop.url == url)
        #expect(hop.value("Range") == "bytes=60-" && hop.value("If-Range") == etag)
    }

    @Test(
        "A redirect to what is not allowed is refused",
        arguments: [
            ("http://a.example/x", -1022, Reason.http), ("ftp://a.example/x", -1010, .http),
            ("https://", -1010, .http), ("https://evil.example/", 202, .domain), ("https:/a", -1010, .http),
            ("https://a.example\\@evil.example/", -1010, .http), ("https://evil.example\t/", -1010, .http),
            ("https://a.example/\u{7}", -1010, .http), ("https://a.example:0/", -1010, .http),
        ])
    func refuses(location: String, code: Int, reason: Reason) {
        let refusal = redirect(to: location) { $0.admits = { $0 != "evil.example" } }.refusal
        #expect(refusal?.failure.code == code && refusal?.reason == reason)
    }

    @Test("Ten redirects are followed, the eleventh is a loop")
    func loop() {
        var plan = makePlan()
        _ = plan.begin()
        for _ in 0..<10 {
            #expect(plan.head(head(302, ["Location": "/again"])).request != nil)
        }
        #expect(plan.head(head(302, ["Location": "/again"])).refusal?.failure.code == URLErrorCode.tooManyRedirects)
    }

    @Test("A short body of a redirect is taken, a long one is not waited for")
    func draining() {
        var plan = makePlan()
        _ = plan.begin()
        #expect(plan.head(head(302, ["Location": "/next", "Content-Length": "10"])) == .ignore)
        #expect(plan.body(10) == .ignore)
        var lying = plan
        #expect(lying.body(1).request?.url == "https://a.example/next")
        #expect(plan.end(nil).request?.url == "https://a.example/next")
        var long = TransferPlan(.init(url: assetURL), partial: .init(length: 0, note: nil, storageEpoch: here))
        _ = long.begin()
        #expect(long.head(head(302, ["Location": "/next", "Content-Length": "100000"])).request != nil)
    }

    @Test(
        "The method changes as in browsers",
        arguments: [
            (301, "POST", "GET", false), (302, "POST", "GET", false), (303, "PUT", "GET", false),
            (307, "POST", "POST", true), (308, "POST", "POST", true), (302, "PUT", "PUT", true),
            (303, "GET", "GET", true),
        ])
    func methods(status: Int, before: String, after: String, keepsBody: Bool) {
        let hop = redirect(status, to: "/x") {
            $0.method = before
            $0.hasBody = true
            $0.headers = [HeaderField(name: "Content-Type", value: "text/plain")]
        }.request
        #expect(hop?.method == after && hop?.sendsBody == keepsBody)
        #expect((hop?.value("Content-Type") != nil) == keepsBody)
    }

    @Test(
        "What the app sends to its server is for no other",
        arguments: [
            ("/x", true), ("https://a.example/x", true), ("https://b.example/x", false),
            ("https://a.example:444/x", false),
        ])
    func privateFields(location: String, isKept: Bool) {
        let hop = redirect(to: location) {
            $0.headers = [
                HeaderField(name: "authorization", value: "secret"), HeaderField(name: "X-Key", value: "k"),
                HeaderField(name: "Accept", value: "*/*"),
            ]
        }.request
        #expect((hop?.value("authorization") != nil) == isKept)
        #expect((hop?.value("X-Key") != nil) == isKept)
        #expect(hop?.value("Accept") == "*/*")
    }

    @Test("Credentials that were dropped do not come back on the way home")
    func wayHome() {
        var plan = makePlan { $0.headers = [HeaderField(name: "Authorization", value: "secret")] }
        _ = plan.begin()
        _ = plan.head(head(302, ["Location": "https://b.example/"]))
        let home = plan.head(head(302, ["Location": assetURL])).request
        #expect(home?.url == assetURL && home?.value("Authorization") == nil)
    }
}
