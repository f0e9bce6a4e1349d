// What failures mean: the code against docs/retry.md.
import AssetsModel
import CCurl
import Foundation
import Testing

@testable import AssetsTransfer

@Suite("Failures of connections")
struct FailureTableTests {
    /// Rows of the table in docs/retry.md that begins with a header cell, as cells without spaces around.
    static func rows(under header: String) throws -> [[String]] {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/retry.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(
            separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.hasPrefix("| \(header) |") })
        return lines[start...].dropFirst(2).prefix { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test("Every result of libcurl has its meaning")
    func everyResult() {
        for code in 1..<CURL_LAST.rawValue { #expect(CurlFailure.kinds[code] != nil, "\(code)") }
        #expect(CurlFailure.kinds.count == Int(CURL_LAST.rawValue) - 1)
        #expect(CurlFailure.kinds[CURLE_OK.rawValue] == nil)
    }

    @Test("A result of a later libcurl is tried again")
    func laterResult() {
        let failure = CurlFailure(code: CURLcode(rawValue: 4711), text: "new").described
        #expect(failure == TransportFailure(kind: .other, code: URLErrorCode.unknown, text: "new"))
    }

    @Test("The page lists each result where the code puts it, and says what follows")
    func page() throws {
        let rows = try Self.rows(under: "failure")
        #expect(Set(rows.map { $0[0] }) == Set(TransportFailure.Kind.allCases.map(\.rawValue)))
        for row in rows {
            let kind = try #require(TransportFailure.Kind(rawValue: row[0]))
            let listed = Set(row[1].split(separator: ",").compactMap { UInt32($0.split(separator: " ")[0]) })
            #expect(listed == Set(CurlFailure.kinds.filter { $0.value == kind }.keys), "\(kind)")
            let reasons = row[3].split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            for code in [URLErrorCode.unknown, URLErrorCode.notConnectedToInternet] {
                switch TransportFailure(kind: kind, code: code, text: "").meaning {
                case .interrupts(.unreachable, let reason):
                    #expect(row[2] == "wait for network" && reasons.contains(reason.rawValue), "\(kind)")
                case .interrupts(_, let reason):
                    #expect(row[2] == "retry" && reasons.contains(reason.rawValue), "\(kind)")
                case .refuses(let reason):
                    #expect(row[2] == "give up" && reasons.contains(reason.rawValue), "\(kind)")
                }
            }
        }
    }

    @Test(
        "Circumstances tell failures apart for which libcurl has one result",
        arguments: [
            (CurlFailure(code: CURLE_OPERATION_TIMEDOUT, text: ""), TransportFailure.Kind.timeout, -1001),
            (CurlFailure(code: CURLE_OPERATION_TIMEDOUT, text: "", isConnected: true), .stall, -1001),
            (CurlFailure(code: CURLE_COULDNT_CONNECT, text: "", osError: Int(ENETUNREACH)), .connect, -1009),
            (CurlFailure(code: CURLE_COULDNT_CONNECT, text: "", osError: Int(ECONNREFUSED)), .connect, -1004),
            (CurlFailure(code: CURLE_COULDNT_CONNECT, text: "", usesProxy: true), .proxy, -1004),
            (CurlFailure(code: CURLE_RECV_ERROR, text: "", usesProxy: true, connectStatus: 407), .proxy, -1004),
            (CurlFailure(code: CURLE_RECV_ERROR, text: "", usesProxy: true, connectStatus: 200), .reset, -1005),
            (CurlFailure(code: CURLE_URL_MALFORMAT, text: ""), .invalid, -1000),
        ])
    func circumstances(failure: CurlFailure, kind: TransportFailure.Kind, number: Int) {
        #expect(failure.described.kind == kind && failure.described.code == number)
    }

    @Test("A certificate out of its time is a reason to look at the clock")
    func clock() {
        for result in [9, 10] {
            let failure = CurlFailure(code: CURLE_PEER_FAILED_VERIFICATION, text: "expired", verifyResult: result)
            #expect(failure.described.text.contains("date") && failure.described.kind == .certificate)
        }
        let other = CurlFailure(code: CURLE_PEER_FAILED_VERIFICATION, text: "unknown authority", verifyResult: 20)
        #expect(other.described.text == "unknown authority")
    }
}

@Suite("Statuses of HTTP")
struct StatusTableTests {
    /// What a plan does with a status, in the words of docs/retry.md; empty for bytes that are taken.
    private func outcome(_ status: Int, resuming: Bool) -> String {
        var order = TransferPlan.Order(url: "https://a.example/file")
        let resume = ResumePoint(
            etag: "\"1\"", lastModified: nil, total: 100, syncedOffset: 50, storageEpoch: "here")
        if resuming { order.resume = resume }
        let partial = TransferPlan.Partial(
            length: resuming ? 50 : 0, note: resuming ? PartialNote(resume) : nil, storageEpoch: "here")
        var plan = TransferPlan(order, partial: partial)
        _ = plan.begin()
        var fields = [HeaderField(name: "Location", value: "/elsewhere"), HeaderField(name: "ETag", value: "\"1\"")]
        if status == 206 { fields.append(HeaderField(name: "Content-Range", value: "bytes 50-99/100")) }
        if status == 401 { fields.append(HeaderField(name: "WWW-Authenticate", value: "Basic realm=\"x\"")) }
        switch plan.head(TransportHead(status: status, headers: fields)) {
        case .request, .challenge: return "ask again"
        case .take: return ""
        case .interrupt(let interruption): return interruption.kind == .unreachable ? "wait for network" : "retry"
        case .refuse: return "give up"
        case .append, .ignore, .complete, .check: return "nothing"
        }
    }

    @Test("The page says of every status what a plan does with it")
    func everyStatus() throws {
        var expected: [Int: String] = [:]
        for row in try FailureTableTests.rows(under: "status") where row[0] != "all others" {
            for part in row[0].split(separator: ",") {
                let numbers = part.split(separator: " ").compactMap { Int($0) }
                let first = try #require(numbers.first)
                for status in first...(numbers.last ?? first) { expected[status] = row[1] }
            }
        }
        for status in 200...599 {
            // Only a request for a part can be answered with one, or with a refusal of it.
            let isPart = status == 206 || status == 416
            #expect(outcome(status, resuming: isPart) == expected[status] ?? "give up", "\(status)")
        }
        #expect(outcome(416, resuming: false) == "give up")
    }
}
