import AssetsOS
import Foundation
import Glibc
import Testing

@testable import DevelopmentServer

@Suite("Faults on demand")
struct FaultTests {
    private static let size = 1_000_000

    @Test("The first requests fail with a status, the next succeeds")
    func status() async throws {
        try await inPlace { place in
            try place.write([1], to: "site/a.mp4")
            try await place.withServer(faults: ["*.mp4:503@7x2"]) { server, log in
                for status in [503, 503, 200] {
                    let got = try await curl("--include", server.baseURL + "/a.mp4")
                    #expect(got.text.hasPrefix("HTTP/1.1 \(status) "))
                    #expect(got.text.contains("Retry-After: 7\r\n") == (status == 503))
                }
                #expect(try await log.first(3).map(\.fault) == ["*.mp4:503@7x2", "*.mp4:503@7x2", ""])
            }
        }
    }

    @Test("A connection is cut after the bytes asked for, and a range goes on", arguments: [false, true])
    func close(isSecure: Bool) async throws {
        try await inPlace { place in
            try place.write(pattern(Self.size), to: "site/a")
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            try await place.withServer(
                tls: isSecure ? authority.issue(for: ["localhost"]) : nil, faults: ["a:close@300000x1"]
            ) { server, log in
                let url = server.baseURL + "/a"
                let cut = try await curl("--cacert", authority.certificatePath, url)
                #expect([18, 56].contains(cut.status), "\(cut.error)")
                #expect(cut.output[...] == pattern(Self.size)[..<300_000])
                let rest = try await curl("--cacert", authority.certificatePath, "--range", "300000-", url)
                #expect(cut.output + rest.output == pattern(Self.size))
                let records = try await log.first(2)
                #expect(records[0].bytesSent == 300_000 && !records[0].isComplete && records[1].isComplete)
            }
        }
    }

    @Test("A stalled answer stays open until the client leaves")
    func stall() async throws {
        try await inPlace { place in
            try place.write(pattern(Self.size), to: "site/a")
            try await place.withServer(faults: ["a:stall@1000"]) { server, log in
                let got = try await curl("--speed-limit", "1", "--speed-time", "2", server.baseURL + "/a")
                #expect(got.status == 28, "\(got.error)")
                #expect(got.output == Array(pattern(Self.size)[..<1000]))
                let record = try await log.first(1)[0]
                #expect(record.bytesSent == 1000 && !record.isComplete)
            }
        }
    }

    @Test("A throttled answer takes its time and is whole", arguments: [false, true])
    func throttle(isSecure: Bool) async throws {
        try await inPlace { place in
            try place.write(pattern(Self.size), to: "site/a")
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            try await place.withServer(
                tls: isSecure ? authority.issue(for: ["localhost"]) : nil, faults: ["a:rate=1MB"]
            ) { server, _ in
                let clock = ContinuousClock()
                let start = clock.now
                let got = try await curl("--cacert", authority.certificatePath, server.baseURL + "/a")
                // The first twentieth of a second comes at once.
                #expect(clock.now - start >= .milliseconds(900))
                #expect(got.output == pattern(Self.size))
            }
        }
    }

    @Test("Other connections are served while one stalls and one is slow")
    func independent() async throws {
        try await inPlace { place in
            try place.write(pattern(Self.size), to: "site/slow")
            try place.write([1], to: "site/fast")
            try await place.withServer(faults: ["slow:rate=100", "stalled:stall@1"]) { server, _ in
                let connection = try connected(server.port)
                let fd = connection.rawValue
                let text = Array("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
                try check("send") { send(fd, text, text.count, Int32(MSG_NOSIGNAL)) }
                var byte: UInt8 = 0
                try check("recv") { recv(fd, &byte, 1, 0) }
                #expect(try await curl(server.baseURL + "/fast").output == [1])
                try connection.close()
            }
        }
    }

    @Test("A server that drops ranges says so and sends the whole")
    func noRanges() async throws {
        try await inPlace { place in
            try place.write(pattern(5000), to: "site/a")
            try await place.withServer(faults: ["*:noranges"]) { server, _ in
                let got = try await curl(
                    "--dump-header", "/dev/stderr", "--header", "Range: bytes=10-", server.baseURL + "/a")
                #expect(got.output == pattern(5000))
                #expect(got.error.hasPrefix("HTTP/1.1 200 ") && !got.error.contains("Accept-Ranges"))
            }
        }
    }

    @Test("Faults can be replaced while the server runs")
    func replace() async throws {
        try await inPlace { place in
            try place.write([1], to: "site/a")
            try await place.withServer(faults: ["*:500"]) { server, _ in
                let before = try await curl("--include", server.baseURL + "/a")
                #expect(before.text.hasPrefix("HTTP/1.1 500 "))
                await server.setFaults(FaultPlan())
                let after = try await curl(server.baseURL + "/a")
                #expect(after.output == [1])
            }
        }
    }
}
