// The seam for the app's own code: extension processes, or values in a simulation.
package import AssetsModel

/// Which extension is meant and where it runs.
package struct ExtensionTarget: Hashable, Sendable {
    package var app: String
    package var extensionIdentifier: String
    /// Executable and appex folder, below the device directory.
    package var executable: String
    package var folder: String
    package var groups: [String]

    package init(app: String, extensionIdentifier: String, executable: String, folder: String, groups: [String]) {
        self.app = app
        self.extensionIdentifier = extensionIdentifier
        self.executable = executable
        self.folder = folder
        self.groups = groups
    }
}

/// One call of an entry point.
package enum EntryPoint: Hashable, Sendable {
    /// downloads(for:manifestURL:extensionInfo:); `manifest` is an absolute path.
    case contentRequest(ContentRequest, manifest: String, remaining: Int64?, essentialRemaining: Int64?)
    /// The entry point of 2022 for that occasion, where `downloads(for:manifestURL:extensionInfo:)` is not implemented.
    case applicationEvent(ContentRequest, remaining: Int64?, essentialRemaining: Int64?)
    /// backgroundDownload(_:finishedWithFileURL:); `path` is absolute.
    case finished(DownloadRequest, path: String)
    case failed(DownloadRequest, DownloadFailure)
    /// backgroundDownload(_:didReceive:).
    case challenge(DownloadRequest, ChallengeLife.Question)

    /// As it stands in the journal.
    package var name: String {
        switch self {
        case .contentRequest(let request, _, _, _): "downloads(for: .\(request))"
        case .applicationEvent(.install, _, _): "applicationDidInstall(metadata:)"
        case .applicationEvent(.update, _, _): "applicationDidUpdate(metadata:)"
        case .applicationEvent(.periodic, _, _): "checkForUpdates(metadata:)"
        case .applicationEvent(.languageChange, _, _): "an entry point of 2022 for .languageChange"
        case .finished: "backgroundDownload(_:finishedWithFileURL:)"
        case .failed: "backgroundDownload(_:failedWithError:)"
        case .challenge: "backgroundDownload(_:didReceive:)"
        }
    }
}

/// What came of a call.
package enum EntryPointOutcome: Hashable, Sendable {
    case downloads([DownloadRequest])
    case handled
    /// Of a challenge.
    case answered(ChallengeDisposition)
    case notImplemented
    /// The process could not be started, crashed, hung or answered nonsense; the text says which.
    case died(Reason, String)
}

/// Calls entry points. One call at a time for each app; the service sees to it.
package protocol ExtensionRunner: Sendable {
    /// Launches the extension when it is not running, and calls it. `limit` is in process time.
    func call(_ entry: EntryPoint, on target: ExtensionTarget, limit: Duration?) async -> EntryPointOutcome
    /// Ends the app's extension when it runs.
    func end(app: String) async
}
