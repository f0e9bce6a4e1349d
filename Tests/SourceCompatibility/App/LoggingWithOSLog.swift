// Logging by its framework's name.
import BackgroundAssets
import OSLog

struct AssetLog: Sendable {
    private let logger = Logger(subsystem: "org.example", category: "assets")

    func note(_ result: Result<BADownload, any Error>) {
        switch result {
        case .success(let download): logger.info("\(download, privacy: .private(mask: .hash)) is here")
        case .failure(let error): logger.warning("\(error as NSError)")
        }
    }
}
