// An extension as a class with state, which imports nothing but the module.
import BackgroundAssets

@main
class ClassDownloader: BADownloaderExtension {
    let group = "group.org.example.fixture"
    var finished = 0

    required init() {}

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> {
        switch request {
        case .install, .update:
            let allowance = extensionInfo.restrictedEssentialDownloadSizeRemaining
            return makeDownloads(manifestURL, essentialAllowance: allowance)
        case .periodic:
            return makeDownloads(manifestURL, essentialAllowance: 0)
        case .languageChange:
            return []
        @unknown default:
            return []
        }
    }

    private func makeDownloads(_ manifest: URL, essentialAllowance: Int?) -> Set<BADownload> {
        guard let data = try? Data(contentsOf: manifest),
            let json = try? JSONSerialization.jsonObject(with: data) as? [String: Any],
            let items = json["downloads"] as? [[String: Any]]
        else { return [] }
        var left = essentialAllowance ?? .max
        let downloads = items.compactMap { item -> BADownload? in
            guard let name = item["identifier"] as? String, let size = item["size"] as? Int,
                let url = (item["url"] as? String).flatMap(URL.init(string:))
            else { return nil }
            let isEssential = item["essential"] as? Bool == true && size <= left
            if isEssential { left -= size }
            return BAURLDownload(
                identifier: name, request: URLRequest(url: url), essential: isEssential, fileSize: size,
                applicationGroupIdentifier: group, priority: isEssential ? .max : .default)
        }
        return Set(downloads)
    }

    func backgroundDownload(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        (.useCredential, URLCredential(user: "reader", password: "secret", persistence: .none))
    }

    func backgroundDownload(_ finishedDownload: BADownload, finishedWithFileURL fileURL: URL) {
        finished += 1
        guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            return
        }
        let folder = container.appending(path: "Library/Caches", directoryHint: .isDirectory)
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try? FileManager.default.moveItem(at: fileURL, to: folder.appending(path: finishedDownload.identifier))
    }

    func extensionWillTerminate() {}
}
