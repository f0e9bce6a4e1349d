// Opening a session in the desktop's player.
import BackgroundAssets
import SessionsCore

/// Hands a file to the program that the desktop has for it.
struct Player {
    private let library: SessionLibrary
    private let manifest: Manifest

    init(_ library: SessionLibrary, _ manifest: Manifest) {
        self.library = library
        self.manifest = manifest
    }

    /// Returns the exit status.
    func play(_ identifier: String) throws -> Int32 {
        guard let session = manifest[identifier] else {
            throw AppError("there is no session '\(identifier)'; '--json' lists them")
        }
        guard let local = library.local(session) else {
            throw AppError("'\(session.title)' is not on this machine yet; '--wait' fetches it")
        }
        guard let opener = Self.opener() else {
            throw AppError("there is no desktop to open it with (xdg-open is not in PATH); it is \(local.fileURL.path)")
        }
        let process = try Process.run(opener, arguments: [local.fileURL.path])
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw AppError("xdg-open could not open \(local.fileURL.path)")
        }
        return 0
    }

    private static func opener() -> URL? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").lazy
            .map { URL(filePath: String($0)).appending(path: "xdg-open") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }
}
