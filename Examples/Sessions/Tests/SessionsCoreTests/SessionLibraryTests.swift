// Where sessions and the manifest are kept.
import BackgroundAssets
import Testing

@testable import SessionsCore

@Suite("Session library")
final class SessionLibraryTests {
    private let container: URL
    private let library: SessionLibrary
    private let session: Session

    init() throws {
        container = FileManager.default.temporaryDirectory.appending(path: "sessions-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: container, withIntermediateDirectories: true)
        library = SessionLibrary(container: container)
        session = try makeSession("intro", fileName: "intro.mp4")
    }

    deinit { try? FileManager.default.removeItem(at: container) }

    private func makeFile(_ text: String = "film") throws -> URL {
        let file = container.appending(path: "vended-\(UUID().uuidString)")
        try Data(text.utf8).write(to: file)
        return file
    }

    @Test("Before a manifest was saved there is none")
    func hasNoManifest() throws {
        #expect(try library.savedManifest() == nil)
    }

    @Test("A saved manifest is read again, also in place of an older one")
    func savesManifest() throws {
        try library.save(try Manifest(sessions: []))
        let manifest = try Manifest(sessions: [session])
        try library.save(manifest)
        #expect(try library.savedManifest() == manifest)
    }

    @Test("A damaged or overlong manifest is an error", arguments: [Data("{".utf8), Data(count: Manifest.sizeMax + 1)])
    func refusesDamage(data: Data) throws {
        try library.save(try Manifest(sessions: []))
        try data.write(to: library.manifestURL)
        #expect(throws: ManifestError.self) { try library.savedManifest() }
    }

    @Test("A session is local when its file is there, and missing when it has gone")
    func tellsLocal() throws {
        let manifest = try Manifest(sessions: [session])
        #expect(library.local(session) == nil)
        #expect(library.missing(of: manifest) == [session])
        let vended = try makeFile()
        let local = try library.keep(vended, as: session)
        #expect(library.local(session) == local)
        #expect(library.missing(of: manifest).isEmpty)
        #expect(!FileManager.default.fileExists(atPath: vended.path))
        #expect(try String(contentsOf: local.fileURL, encoding: .utf8) == "film")
        try FileManager.default.removeItem(at: local.fileURL)
        #expect(library.missing(of: manifest) == [session])
    }

    @Test("Sessions lie among the caches, so that the system may delete them")
    func liesInCaches() throws {
        let local = try library.keep(try makeFile(), as: session)
        #expect(local.fileURL.path.hasPrefix(container.path + "/Library/Caches/"))
    }

    @Test("A newer file replaces the one that is there")
    func replaces() throws {
        try library.keep(try makeFile("old!"), as: session)
        let local = try library.keep(try makeFile("new!"), as: session)
        #expect(try String(contentsOf: local.fileURL, encoding: .utf8) == "new!")
    }

    @Test("A file of another size does not become the session, and is not left behind")
    func refusesWrongSize() throws {
        let vended = try makeFile("trailer")
        #expect(throws: LibraryError.wrongSize("intro")) { try library.keep(vended, as: session) }
        #expect(library.local(session) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: library.sessionsURL.path).isEmpty)
    }

    @Test("A folder or a link in place of the file is no local session")
    func refusesOtherKinds() throws {
        let place = library.sessionsURL.appending(path: session.fileName)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        #expect(library.local(session) == nil)
        try FileManager.default.removeItem(at: place)
        try FileManager.default.createSymbolicLink(at: place, withDestinationURL: try makeFile())
        #expect(library.local(session) == nil)
    }

    @Test("A file that was taken over before is found when it is told again")
    func takesOverOnce() throws {
        let vended = try makeFile()
        let taken = try library.takeOver(vended, of: "intro")
        #expect(!FileManager.default.fileExists(atPath: vended.path))
        #expect(try library.takeOver(vended, of: "intro") == taken)
        try library.keep(taken, as: session)
        #expect(throws: (any Error).self) { try library.takeOver(vended, of: "intro") }
    }

    @Test("A download whose identifier is no name is not taken over", arguments: ["../intro", "", ".."])
    func refusesStrangeIdentifiers(identifier: String) throws {
        let vended = try makeFile()
        #expect(throws: LibraryError.unknown(identifier)) { try library.takeOver(vended, of: identifier) }
    }
}

@Suite("Download of a session")
struct SessionDownloadTests {
    @Test("The download carries id, size, address, priority and whether it is essential", arguments: [true, false])
    func carriesValues(isEssential: Bool) throws {
        let session = try makeSession("intro", fileName: "intro.mp4", size: 123)
        let download = session.makeDownload(essential: isEssential, priority: .max)
        #expect(download.identifier == "intro")
        #expect(download.isEssential == isEssential)
        #expect(download.priority == .max)
        #expect(download.state == .created)
    }
}
