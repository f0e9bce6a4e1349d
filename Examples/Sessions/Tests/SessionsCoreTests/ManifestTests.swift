// What a manifest may be.
import BackgroundAssets
import Testing

@testable import SessionsCore

@Suite("Manifest")
struct ManifestTests {
    /// A manifest of one session, with one of its values replaced by JSON text.
    private func json(_ key: String? = nil, _ value: String = "") -> Data {
        var values = [
            "id": "\"intro\"", "title": "\"An introduction\"", "fileName": "\"intro.mp4\"", "size": "1000",
            "sha256": "\"\(String(repeating: "0a", count: 32))\"", "essential": "true",
            "url": "\"https://cdn.example.org/intro.mp4\"",
        ]
        if let key { values[key] = value }
        let session = values.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value)" }.joined(separator: ", ")
        return Data("{\"sessions\": [{\(session)}], \"comment\": \"newer servers may say more\"}".utf8)
    }

    @Test("A manifest is read with every value of its sessions")
    func isRead() throws {
        let session = try #require(try Manifest(json: json())["intro"])
        #expect(session.title == "An introduction")
        #expect(session.fileName == "intro.mp4")
        #expect(session.size == 1000)
        #expect(session.essential)
        #expect(session.url.absoluteString == "https://cdn.example.org/intro.mp4")
    }

    @Test("What was encoded is decoded to the same manifest")
    func survivesCoding() throws {
        let manifest = try Manifest(json: json())
        #expect(try Manifest(json: JSONEncoder().encode(manifest)) == manifest)
    }

    @Test(
        "A value that could do harm is refused",
        arguments: [
            ("id", "\"\""), ("id", "\"../intro\""), ("id", "\"..\""), ("id", "\"a b\""), ("id", "7"),
            ("fileName", "\"../../.profile\""), ("fileName", "\"/etc/passwd\""), ("fileName", "\".hidden\""),
            ("fileName", "\"a\\u0000b\""), ("fileName", "\"\""),
            ("title", "\"\""), ("title", "\"red \\u001b[31m\""), ("title", "\"turned \\u202e around\""),
            ("size", "0"), ("size", "-1"), ("size", "1e300"), ("size", "9223372036854775807"), ("size", "\"1\""),
            ("sha256", "\"abc\""), ("sha256", "\"\(String(repeating: "zz", count: 32))\""),
            ("url", "\"http://cdn.example.org/intro.mp4\""), ("url", "\"file:///etc/passwd\""),
            ("url", "\"https:///intro.mp4\""), ("url", "\"\""), ("essential", "\"yes\""),
        ])
    func refusesHarm(key: String, value: String) {
        #expect(throws: ManifestError.self) { try Manifest(json: json(key, value)) }
    }

    @Test("A name that is longer than file systems take is refused")
    func refusesLongNames() throws {
        #expect(throws: ManifestError.self) {
            try Manifest(json: json("fileName", "\"\(String(repeating: "a", count: 256))\""))
        }
        _ = try Manifest(json: json("fileName", "\"\(String(repeating: "a", count: 255))\""))
    }

    @Test("Two sessions with one id or one file name are refused", arguments: [("b", "a.mp4"), ("a", "b.mp4")])
    func refusesDoubles(id: String, fileName: String) throws {
        let sessions = try [makeSession("a", fileName: "a.mp4"), makeSession(id, fileName: fileName)]
        #expect(throws: ManifestError.self) { try Manifest(sessions: sessions) }
    }

    @Test("Too many sessions and too many bytes are refused")
    func refusesTooMuch() throws {
        let sessions = try (0...Manifest.sessionsMax).map { try makeSession("s\($0)", fileName: "f\($0)") }
        #expect(throws: ManifestError.self) { try Manifest(sessions: sessions) }
        _ = try Manifest(sessions: sessions.dropLast())
        let spaces = Data(repeating: UInt8(ascii: " "), count: Manifest.sizeMax)
        #expect(throws: ManifestError.self) { try Manifest(json: json() + spaces) }
    }

    @Test(
        "What is no manifest is refused, never a crash",
        arguments: [
            "", "[]", "{}", "null", "{\"sessions\": null}", "{\"sessions\": {}}", "\u{0}\u{1}", "{\"sessions\": [",
        ])
    func refusesNonsense(text: String) {
        #expect(throws: ManifestError.self) { try Manifest(json: Data(text.utf8)) }
    }

    @Test("Every prefix of a manifest is refused")
    func refusesPrefixes() throws {
        let whole = json()
        for count in 0..<whole.count {
            #expect(throws: ManifestError.self) { try Manifest(json: whole.prefix(count)) }
        }
    }
}

/// A session of 4 bytes.
func makeSession(_ id: String, fileName: String, size: Int64 = 4) throws -> Session {
    Session(
        id: id, title: "Session \(id)", fileName: fileName, size: size, sha256: String(repeating: "0", count: 64),
        essential: false, url: try #require(URL(string: "https://cdn.example.org/\(fileName)")))
}
