// What each fault of the catalogue looks like on the wire.
import AssetsOS
import Foundation
import Glibc
import Testing

@testable import DevelopmentServer

/// What a raw connection brought.
private struct Raw {
    var heads: [String]
    var body: [UInt8]
    var all: [UInt8]

    init(_ bytes: [UInt8]) {
        all = bytes
        heads = []
        body = bytes
        while let end = body.firstRange(of: Array("\r\n\r\n".utf8)), body.starts(with: "HTTP/".utf8) {
            let head = String(decoding: body[..<end.lowerBound], as: UTF8.self)
            heads.append(head)
            body.removeFirst(end.upperBound)
            // Another head follows an informational one only.
            if !head.hasPrefix("HTTP/1.1 1") { break }
        }
    }

    var status: Int { Int((heads.last ?? "").split(separator: " ").dropFirst().first ?? "") ?? 0 }

    func field(_ name: String) -> String? {
        (heads.last ?? "").components(separatedBy: "\r\n").first { $0.hasPrefix(name + ": ") }?
            .components(separatedBy: ": ").dropFirst().joined(separator: ": ")
    }
}

@Suite("Every fault on the wire")
struct FaultWireTests {
    private static let size = 100_000
    private let content = pattern(Self.size)

    /// Asks a server with a fault for `/a`.
    private func ask(
        _ place: Place, _ rules: [String], fields: [String] = [], requests: Int = 1
    ) async throws -> (all: [Raw], records: [AccessRecord]) {
        // Written once: another file would be another version.
        if access(place.site + "/a", F_OK) != 0 { try place.write(content, to: "site/a") }
        var answers: [Raw] = []
        var records: [AccessRecord] = []
        try await place.withServer(faults: rules) { server, log in
            for _ in 0..<requests {
                let lines = ["GET /a?q HTTP/1.1", "Host: h.test", "Connection: close"] + fields
                let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
                answers.append(Raw(try await exchangeBytes(server.port, bytes)))
            }
            records = try await log.first(requests)
        }
        return (answers, records)
    }

    private func one(_ place: Place, _ rule: String, fields: [String] = []) async throws -> Raw {
        try await ask(place, ["a:" + rule], fields: fields).all[0]
    }

    @Test("Each fault does what its line says", arguments: Fault.allCases)
    func each(fault: Fault) async throws {
        try await inPlace { place in
            switch fault {
            case .status, .retryDate, .captivePortal, .redirectLoop, .redirectPlain, .redirectAway:
                try await instead(fault, place)
            case .noRanges, .ifRangeTag, .unsatisfiable, .rangeShift, .noContentRange, .wrongTotal, .otherTag,
                .multipart:
                try await parts(fault, place)
            case .weakTag, .dateOnly, .noValidator, .sameTag, .changing:
                try await versions(fault, place)
            case .wrongSize, .short, .long, .corrupt, .digest, .wrongDigest, .wrongChecksum, .gzip, .chunked,
                .badChunk, .http10:
                try await bodies(fault, place)
            case .garbage, .hugeHead, .informational:
                try await heads(fault, place)
            case .wait, .slowHead, .hang, .drop, .dropReused, .close, .reset, .stall, .rate, .refuse:
                try await connections(fault, place)
            case .tlsRefused, .tlsExpired, .tlsUntrusted:
                try await handshakes(fault, place)
            }
        }
    }

    // MARK: In place of the file

    private func instead(_ fault: Fault, _ place: Place) async throws {
        let rule = fault == .status ? "503@7" : fault.rawValue
        let raw = try await one(place, rule)
        let location = raw.field("Location")
        switch fault {
        case .status: #expect(raw.status == 503 && raw.field("Retry-After") == "7")
        case .retryDate:
            let (date, retry) = (raw.field("Date") ?? "", raw.field("Retry-After") ?? "")
            #expect(raw.status == 503 && retry.hasSuffix(" GMT") && retry != date)
        case .captivePortal:
            #expect(raw.status == 200 && raw.field("Content-Type") == "text/html; charset=utf-8")
            #expect(raw.field("Content-Length") == "\(raw.body.count)" && raw.body.starts(with: "<!DOCTYPE".utf8))
        case .redirectLoop: #expect(raw.status == 302 && location == "/a?q")
        case .redirectPlain: #expect(raw.status == 302 && location == "http://elsewhere.test/a?q")
        case .redirectAway: #expect(raw.status == 302 && location == "https://elsewhere.test/a?q")
        default: Issue.record("\(fault) is tested elsewhere")
        }
    }

    // MARK: Parts

    private func parts(_ fault: Fault, _ place: Place) async throws {
        let right = try await ask(place, [], fields: ["Range: bytes=1000-"]).all[0]
        let tag = try #require(right.field("ETag"))
        #expect(right.status == 206 && right.body == Array(content[1000...]))
        let fields = ["Range: bytes=1000-"] + (fault == .ifRangeTag ? ["If-Range: \(tag)"] : [])
        let raw = try await one(place, fault.rawValue, fields: fields)
        let range = raw.field("Content-Range")
        switch fault {
        case .noRanges:
            #expect(raw.status == 200 && raw.body == content && raw.field("Accept-Ranges") == nil)
        case .ifRangeTag:
            #expect(raw.status == 200 && raw.body == content && raw.field("ETag") == tag)
            #expect(try await one(place, fault.rawValue, fields: ["Range: bytes=1000-"]).status == 206)
        case .unsatisfiable:
            #expect(raw.status == 416 && range == "bytes */100000")
            #expect(try await one(place, fault.rawValue).status == 200)
        case .rangeShift:
            #expect(raw.status == 206 && range == "bytes 1001-99999/100000" && raw.body == Array(content[1001...]))
        case .noContentRange:
            #expect(raw.status == 206 && range == nil && raw.body == Array(content[1000...]))
        case .wrongTotal:
            #expect(raw.status == 206 && range == "bytes 1000-99999/100001" && raw.body == Array(content[1000...]))
        case .otherTag:
            #expect(raw.status == 206 && raw.field("ETag") == "\"other\"" && raw.body == Array(content[1000...]))
            #expect(try await one(place, fault.rawValue).field("ETag") == tag)
        case .multipart:
            #expect(raw.status == 206 && raw.field("Content-Type")?.hasPrefix("multipart/byteranges") == true)
            #expect(raw.field("Content-Length") == "\(raw.body.count)" && raw.body.count > 99_000)
            #expect(String(decoding: raw.body, as: UTF8.self).contains("Content-Range: bytes 1000-99999/100000\r\n"))
        default: Issue.record("\(fault) is tested elsewhere")
        }
    }

    // MARK: Versions

    private func versions(_ fault: Fault, _ place: Place) async throws {
        let right = try await ask(place, []).all[0]
        let raws = try await ask(place, ["a:" + fault.rawValue], requests: 2).all
        let (tag, date) = (raws[0].field("ETag"), raws[0].field("Last-Modified"))
        let range = "Range: bytes=1000-"
        switch fault {
        case .weakTag:
            #expect(tag == "W/\(right.field("ETag") ?? "")" && date == nil)
            // RFC 9110, 13.1.5: a weak tag never matches.
            let fields = [range, "If-Range: \(tag ?? "")"]
            #expect(try await one(place, fault.rawValue, fields: fields).status == 200)
        case .dateOnly:
            #expect(tag == nil && date != nil && date != right.field("Last-Modified"))
            let fields = [range, "If-Range: \(date ?? "")"]
            #expect(try await one(place, fault.rawValue, fields: fields).status == 206)
        case .noValidator: #expect(tag == nil && date == nil)
        case .sameTag: #expect(raws.allSatisfy { $0.field("ETag") == "\"same\"" } && date == nil)
        case .changing:
            #expect(raws[0].body == content && raws[1].body == content.map { $0 ^ 1 })
            #expect(tag != raws[1].field("ETag") && date != raws[1].field("Last-Modified"))
            let same = try await ask(
                place, ["a:changing", "a:same-etag"], fields: [range, "If-Range: \"same\""], requests: 3
            ).all
            #expect(same.map(\.status) == [206, 206, 206] && same[2].body == content[1000...].map { $0 ^ 2 })
        default: Issue.record("\(fault) is tested elsewhere")
        }
    }

    // MARK: Bodies

    private func bodies(_ fault: Fault, _ place: Place) async throws {
        let values: [Fault: String] = [
            .wrongSize: "@5000", .badChunk: "@5000", .long: "@10", .short: "@10", .corrupt: "@7",
        ]
        let raw = try await one(place, fault.rawValue + (values[fault] ?? ""))
        let length = raw.field("Content-Length").flatMap { Int($0) }
        #expect(raw.status == 200)
        switch fault {
        case .wrongSize: #expect(length == 5000 && raw.body == Array(content[..<5000]))
        case .short:
            #expect(length == Self.size + 10 && raw.body == content)
            let rest = try await one(place, "short@10", fields: ["Range: bytes=100000-"])
            #expect(rest.status == 206 && rest.body.isEmpty && rest.field("Content-Length") == "10")
        case .long: #expect(length == Self.size && raw.body == content + Array(repeating: UInt8(ascii: "#"), count: 10))
        case .corrupt:
            let wrong = zip(raw.body, content).enumerated().filter { $0.element.0 != $0.element.1 }.map(\.offset)
            #expect(length == Self.size && wrong == [7])
        case .digest:
            let sum = try await run(
                "openssl", ["dgst", "-sha256", "-binary", "-out", place.folder + "/sum", place.site + "/a"])
            #expect(sum.status == 0)
            let bytes = try Data(contentsOf: URL(fileURLWithPath: place.folder + "/sum"))
            #expect(raw.field("Repr-Digest") == "sha-256=:\(bytes.base64EncodedString()):" && raw.body == content)
        case .wrongDigest:
            #expect(raw.field("Repr-Digest")?.hasPrefix("sha-256=:47DEQ") == true && raw.body == content)
        case .wrongChecksum:
            #expect(raw.field("x-amz-checksum-sha256")?.hasPrefix("47DEQ") == true && raw.body == content)
        case .gzip: #expect(raw.field("Content-Encoding") == "gzip" && raw.body == content)
        case .chunked:
            let whole = Array("186a0\r\n".utf8) + content + Array("\r\n0\r\n\r\n".utf8)
            #expect(length == nil && raw.field("Transfer-Encoding") == "chunked" && raw.body == whole)
        case .badChunk:
            let whole = Array("1388\r\n".utf8) + content[..<5000] + Array("\r\nno chunk\r\n".utf8)
            #expect(length == nil && raw.field("Transfer-Encoding") == "chunked" && raw.body == whole)
        case .http10:
            #expect(length == nil && raw.heads[0].hasPrefix("HTTP/1.0 200 ") && raw.body == content)
        default: Issue.record("\(fault) is tested elsewhere")
        }
    }

    // MARK: Heads

    private func heads(_ fault: Fault, _ place: Place) async throws {
        let raw = try await one(place, fault.rawValue)
        switch fault {
        case .garbage: #expect(raw.heads.isEmpty && raw.all == Array("220 elsewhere.test ESMTP ready\r\n".utf8))
        case .hugeHead: #expect(raw.heads.count == 1 && raw.heads[0].utf8.count > 1 << 20 && raw.body == content)
        case .informational:
            #expect(raw.heads.count == 1001 && raw.heads[0].hasPrefix("HTTP/1.1 103 ") && raw.body == content)
        default: Issue.record("\(fault) is tested elsewhere")
        }
    }

    // MARK: Time and connections

    private func connections(_ fault: Fault, _ place: Place) async throws {
        try place.write(content, to: "site/a")
        let values: [Fault: String] = [
            .close: "@5000", .reset: "@5000", .stall: "@5000", .rate: "@200000", .wait: "@1", .slowHead: "@1",
            .refuse: "@3",
        ]
        let rule = "a:" + fault.rawValue + (values[fault] ?? "") + "x1"
        try await place.withServer(faults: [rule]) { server, log in
            let clock = ContinuousClock()
            let start = clock.now
            let url = server.baseURL + "/a"
            switch fault {
            case .wait, .slowHead, .rate:
                #expect(try await curl(url).output == content)
                #expect(clock.now - start >= .milliseconds(fault == .rate ? 400 : 900))
                let record = try await log.first(1)[0]
                #expect(record.isComplete && record.fault == rule)
            case .hang, .stall:
                let got = try await curl("--speed-limit", "1", "--speed-time", "1", url)
                #expect(got.status == 28 && got.output == (fault == .hang ? [] : Array(content[..<5000])))
                let record = try await log.first(1)[0]
                #expect(!record.isComplete && record.status == (fault == .hang ? 0 : 200))
            case .drop:
                #expect(try await curl(url).status == 52)
                #expect(try await log.first(1)[0].status == 0)
            case .dropReused:
                // curl asks again on a new connection by itself.
                let got = try await curl(url, url)
                #expect(got.output == content + content)
                #expect(try await log.first(3).map(\.connection) == [1, 1, 2])
            case .close:
                let got = try await curl(url)
                #expect(got.status == 18 && got.output == Array(content[..<5000]))
            case .reset:
                let got = try await curl(url)
                #expect(got.status == 56 && got.error.contains("reset"), "\(got.error)")
            case .refuse:
                // Both by one program: the test itself may be held up for longer than the port is closed.
                let refused = try await curl(url, url)
                #expect(refused.status == 7 && refused.error.contains("(52)"), "\(refused.error)")
                // The port is the same one afterwards.
                let got = try await curl("--retry", "20", "--retry-delay", "1", "--retry-connrefused", url)
                #expect(got.output == content && clock.now - start >= .milliseconds(900))
            default: Issue.record("\(fault) is tested elsewhere")
            }
        }
    }

    // MARK: TLS

    private func handshakes(_ fault: Fault, _ place: Place) async throws {
        try place.write(content, to: "site/a")
        let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
        let identity = try authority.issue(for: ["localhost", "a.localhost"])
        try await place.withServer(tls: identity, faults: ["a.*:\(fault.rawValue)x1"]) { server, log in
            let url = "https://a.localhost:\(server.port)/a"
            // One connection after the other: the fault is for the host that the handshake names.
            #expect(try await curl("--cacert", authority.certificatePath, server.baseURL + "/a").output == content)
            let got = try await curl(
                "--cacert", authority.certificatePath, "--resolve", "a.localhost:\(server.port):127.0.0.1", url)
            #expect(got.status == (fault == .tlsRefused ? 35 : 60) && got.output.isEmpty)
            let word = fault == .tlsRefused ? "handshake failure" : fault == .tlsExpired ? "expired" : "self-signed"
            #expect(got.error.contains(word), "\(got.error)")
            let again = try await curl(
                "--cacert", authority.certificatePath, "--resolve", "a.localhost:\(server.port):127.0.0.1", url)
            #expect(again.output == content)
            let records = try await log.first(3)
            #expect(records.map(\.fault).sorted() == ["", "", "a.*:\(fault.rawValue)x1"])
        }
    }
}
