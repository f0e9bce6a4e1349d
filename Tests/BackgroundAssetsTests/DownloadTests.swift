internal import AssetsWire
internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable import BackgroundAssets

@Suite struct DownloadTests {
    @Test("The designated initializer keeps what it is given")
    func values() {
        var request = makeRequest("a b")
        request.httpMethod = "POST"
        request.setValue("1", forHTTPHeaderField: "X-B")
        request.setValue("2", forHTTPHeaderField: "X-A")
        request.httpBody = Data([0, 255])
        let download = BAURLDownload(
            identifier: "name", request: request, essential: true, fileSize: 12,
            applicationGroupIdentifier: "group.a", priority: .max)
        #expect(download.identifier == "name")
        #expect(download.isEssential)
        #expect(download.priority == .max)
        #expect(download.state == .created)
        #expect(UUID(uuidString: download.uniqueIdentifier) != nil)
        let wire = download.content.wire(state: download.state)
        #expect(wire.url == "https://assets.example.com/a%20b")
        #expect(wire.method == "POST")
        #expect(wire.headers.map(\.name) == ["X-A", "X-B"])
        #expect(wire.body == "AP8=")
        #expect(wire.group == "group.a")
        #expect(wire.size == 12)
        #expect(wire.kind == "url")
        #expect(wire.state == 0)
    }

    @Test("The shorter initializers are not essential and have the default priority")
    @available(*, deprecated)
    func shorter() {
        let request = makeRequest()
        let sized = BAURLDownload(
            identifier: "a", request: request, fileSize: 5, applicationGroupIdentifier: "g")
        let plain = BAURLDownload(identifier: "a", request: request, applicationGroupIdentifier: "g")
        let urgent = BAURLDownload(identifier: "a", request: request, applicationGroupIdentifier: "g", priority: .max)
        #expect([sized, plain, urgent].allSatisfy { !$0.isEssential })
        #expect([sized, plain, urgent].map(\.priority) == [.default, .default, .max])
        #expect([sized, plain, urgent].map(\.content.size) == [5, 0, 0])
    }

    @Test("Nonsense makes a download, not a trap", arguments: [Int.min, -1, 0, Int.max])
    func nonsense(size: Int) {
        var request = makeRequest()
        request.url = nil
        let download = BAURLDownload(
            identifier: "", request: request, essential: true, fileSize: size, applicationGroupIdentifier: "",
            priority: .init(Int.min))
        #expect(download.content.url.isEmpty)
        #expect(download.content.size == Int64(size))
    }

    @Test("Equality and hash are those of the unique identifier")
    func equality() {
        let first = makeDownload()
        let second = makeDownload()
        #expect(first != second)
        #expect(Set([first, second, first]).count == 2)
        #expect(first.copy() as? BADownload === first)
    }

    @Test("removingEssential makes a new download of the same content")
    func removingEssential() {
        let essential = makeDownload("pack", essential: true)
        let other: BAURLDownload = essential.removingEssential()
        #expect(essential.isEssential)
        #expect(!other.isEssential)
        #expect(other.uniqueIdentifier != essential.uniqueIdentifier)
        #expect(other.identifier == essential.identifier)
        #expect(other.state == .created)
        var expected = essential.content
        expected.isEssential = false
        expected.uniqueIdentifier = other.uniqueIdentifier
        #expect(other.content == expected)
        #expect(DownloadRegistry.shared.find(other.uniqueIdentifier) === other)
    }

    @Test("The manifest's download keeps its private type without being essential")
    func manifest() throws {
        let object = DownloadRegistry.shared.object(ofEvent: makeWire("app.Manifest-1", kind: "manifest", state: -1))
        #expect(object is BAURLDownload)
        #expect(type(of: object) != BAURLDownload.self)
        #expect(type(of: object.removingEssential()) == type(of: object))
    }

    @Test("A download survives an archive")
    func archive() throws {
        var request = makeRequest()
        request.setValue("v\nw", forHTTPHeaderField: "X-H")
        request.setValue("", forHTTPHeaderField: "X-Empty")
        request.httpBody = Data("body".utf8)
        let original = BAURLDownload(
            identifier: "a", request: request, essential: true, fileSize: 9, applicationGroupIdentifier: "g",
            priority: .min)
        let data = try NSKeyedArchiver.archivedData(withRootObject: original, requiringSecureCoding: true)
        let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: BAURLDownload.self, from: data))
        #expect(read == original)
        #expect(read.content == original.content)
        // Both speak of one download: what one is told the other knows.
        original.life.noteEvent(.downloading, number: 1)
        #expect(read.state == .downloading)
    }

    @Test("What a file must come to goes along: to the service, into archives and copies, and back")
    func sha256() throws {
        let bytes = Data((0..<32).map { UInt8($0 * 8) })
        let original = BAURLDownload(
            identifier: "a", request: makeRequest(), essential: true, fileSize: 9, applicationGroupIdentifier: "g",
            sha256: bytes)
        #expect(original.priority == .default)
        let wire = original.content.wire(state: .created)
        #expect(wire.sha256 == "0008101820283038404850586068707880889098a0a8b0b8c0c8d0d8e0e8f0f8")
        #expect(DownloadContent(wire) == original.content)
        let copy: BAURLDownload = original.removingEssential()
        #expect(copy.content.sha256 == Array(bytes) && copy != original)
        let data = try NSKeyedArchiver.archivedData(withRootObject: original, requiringSecureCoding: true)
        let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: BAURLDownload.self, from: data))
        #expect(read == original && read.content == original.content)
        #expect(makeDownload().content.wire(state: .created).sha256 == nil)
    }

    @Test("An archive from before digests, and one that holds something else in its place")
    func archivedDigest() throws {
        let plain = makeDownload()
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        plain.encode(with: archiver)
        archiver.encode("no data" as NSString, forKey: "SHA256")
        archiver.finishEncoding()
        let unarchiver = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
        unarchiver.decodingFailurePolicy = .setErrorAndReturn
        #expect(BAURLDownload(coder: unarchiver) == nil)
    }

    @Test(
        "Digits that are none are bytes of a wrong number, which the service refuses", arguments: ["", "0", "0g", "é"])
    func spoiltDigits(text: String) {
        var wire = makeWire()
        wire.sha256 = text
        #expect(DownloadContent(wire).sha256 == [])
    }

    @Test("An archive that holds something else makes no download")
    func brokenArchive() throws {
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        archiver.encode("a" as NSString, forKey: "identifier")
        archiver.encode("not a UUID" as NSString, forKey: "uniqueIdentifier")
        archiver.finishEncoding()
        let unarchiver = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
        #expect(BAURLDownload(coder: unarchiver) == nil)
        #expect(BAURLDownload(coder: NSCoder()) == nil)
    }

    @Test("The extension's information survives an archive", arguments: [nil, 0, 5] as [Int?])
    func archivedInformation(size: Int?) throws {
        let original = BAAppExtensionInfo(remaining: size, essentialRemaining: nil)
        let data = try NSKeyedArchiver.archivedData(withRootObject: original, requiringSecureCoding: true)
        let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: BAAppExtensionInfo.self, from: data))
        #expect(read.restrictedDownloadSizeRemaining == size)
        #expect(read.restrictedEssentialDownloadSizeRemaining == nil)
    }

    @Test("What does not fit into a message is named before it is sent")
    func obstacles() {
        var large = makeRequest()
        large.httpBody = Data(count: WireLimit.messageMax)
        var streamed = makeRequest()
        streamed.httpBodyStream = InputStream(data: Data([1]))
        func obstacle(_ request: URLRequest) -> String? {
            BAURLDownload(identifier: "x", request: request, fileSize: 0, applicationGroupIdentifier: "g")
                .content.obstacle.map { "\($0.reason); \($0.remedy)" }
        }
        #expect(obstacle(makeRequest()) == nil)
        #expect(obstacle(large)?.contains("larger") == true)
        #expect(obstacle(streamed)?.contains("httpBody") == true)
    }

    @Test("The estimated size of a download is never below that of its message")
    func wireSize() throws {
        var request = makeRequest()
        request.httpBody = Data(count: 1001)
        for number in 0..<40 {
            request.setValue("\"\\\u{7}\n\u{1F}é\(number)", forHTTPHeaderField: "X-\(number)")
        }
        let download = BAURLDownload(
            identifier: "\u{1}\u{2}\"/", request: request, fileSize: .max, applicationGroupIdentifier: "g")
        let message = ManagerInterface.Schedule.Parameters(download: download.content.wire(state: .created))
        let frame = try WireCodec.call(ManagerInterface.Schedule.self, message)
        #expect(frame.count <= download.content.wireSize)
    }
}

@Suite struct RegistryTests {
    @Test("An event finds the live object and brings its state up to date")
    func liveObject() {
        let download = makeDownload()
        let wire = makeWire(unique: download.uniqueIdentifier, state: 2)
        #expect(DownloadRegistry.shared.object(ofEvent: wire) === download)
        #expect(download.state == .downloading)
    }

    @Test("An object that nobody holds is forgotten")
    func forgetting() {
        let unique: String = {
            let download = makeDownload()
            #expect(DownloadRegistry.shared.find(download.uniqueIdentifier) === download)
            return download.uniqueIdentifier
        }()
        #expect(DownloadRegistry.shared.find(unique) == nil)
        let fresh = DownloadRegistry.shared.object(ofEvent: makeWire(unique: unique, state: 3))
        #expect(fresh.state == .finished)
    }

    @Test("Threads that meet one download at once get one object")
    func race() async {
        for _ in 0..<200 {
            let wire = makeWire()
            let objects = await withTaskGroup(of: BADownload.self) { group in
                for _ in 0..<4 { group.addTask { DownloadRegistry.shared.object(ofEvent: wire) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(objects.dropFirst().allSatisfy { $0 === objects[0] })
        }
    }

    @Test("A reply does not undo an event that came after its question")
    func order() {
        let download = makeDownload()
        let asked = DownloadRegistry.shared.eventNumber
        let unique = download.uniqueIdentifier
        _ = DownloadRegistry.shared.object(ofEvent: makeWire(unique: unique, state: 2))
        _ = DownloadRegistry.shared.object(ofReply: makeWire(unique: unique, state: 1), askedAt: asked)
        #expect(download.state == .downloading)
        _ = DownloadRegistry.shared.object(
            ofReply: makeWire(unique: unique, state: 1), askedAt: DownloadRegistry.shared.eventNumber)
        #expect(download.state == .waiting)
    }

    @Test("A download that has ended stays so", arguments: [-1, 3] as [Int64])
    func ended(state: Int64) {
        let download = makeDownload()
        let unique = download.uniqueIdentifier
        _ = DownloadRegistry.shared.object(ofEvent: makeWire(unique: unique, state: state))
        _ = DownloadRegistry.shared.object(ofEvent: makeWire(unique: unique, state: 2))
        _ = DownloadRegistry.shared.object(
            ofReply: makeWire(unique: unique, state: 1), askedAt: DownloadRegistry.shared.eventNumber)
        #expect(download.state.rawValue == Int(state))
    }

    @Test("A state that nobody knows counts as created")
    func unknownState() {
        #expect(DownloadRegistry.shared.object(ofEvent: makeWire(state: .max)).state == .created)
    }
}
