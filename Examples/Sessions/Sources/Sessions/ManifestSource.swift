// Where the app's list of sessions comes from.
import BackgroundAssets
import SessionsCore

/// The manifest that the extension saved, or else one fetched by the app.
struct ManifestSource {
    let library: SessionLibrary

    func manifest() async throws -> Manifest {
        do {
            if let saved = try library.savedManifest() { return saved }
        } catch {
            Terminal.say("the saved list of sessions is not used: \(error.sentence)")
        }
        // The extension has not run: it was disallowed, or the app is not installed but started by its developer.
        let manifest = try await fetch()
        try library.save(manifest)
        return manifest
    }

    private func fetch() async throws -> Manifest {
        let address = try Self.address()
        let (file, response) = try await URLSession.shared.download(from: address)
        defer { try? FileManager.default.removeItem(at: file) }
        guard let status = (response as? HTTPURLResponse)?.statusCode, status == 200 else {
            throw AppError("the server does not have the list of sessions at \(address)")
        }
        return try SessionLibrary.readManifest(at: file)
    }

    /// The same key that the system reads.
    private static func address() throws -> URL {
        guard let text = Bundle.main.object(forInfoDictionaryKey: "BAManifestURL") as? String,
            let url = URL(string: text)
        else { throw AppError("BAManifestURL is not in the app's Info.plist; start the app from its bundle") }
        return url
    }
}
