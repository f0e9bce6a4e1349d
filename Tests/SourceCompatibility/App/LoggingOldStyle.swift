// Logging as sources of iOS 10 have it, by the module's other name.
import BackgroundAssets
import os.log

private let log = OSLog(subsystem: "org.example", category: "assets")

func logStart(of download: BADownload) {
    os_log("Scheduled %@ (%d)", log: log, type: .info, download.identifier, download.priority.rawValue)
}

@MainActor func logState() {
    Logger(log).notice("\(Thread.isMainThread, privacy: .public)")
}
