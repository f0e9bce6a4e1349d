// The seam for the app's own code: extension processes, or values in a simulation.
package import AssetsModel
package import AssetsOS
package import AssetsSandbox

/// Which extension is meant and where it runs.
package struct ExtensionTarget: Hashable, Sendable {
    package var app: String
    /// The folder of the extension's own container, below the device directory.
    package var container: String
    /// Executable and appex folder, below the device directory.
    package var executable: String
    package var folder: String
    /// Those that it shares with its app.
    package var groups: [GroupContainer]
    /// Of what its next process is started for, and with it that process's priority.
    package var urgency: ExtensionUrgency

    package init(
        app: String, container: String, executable: String, folder: String, groups: [GroupContainer],
        urgency: ExtensionUrgency
    ) {
        self.app = app
        self.container = container
        self.executable = executable
        self.folder = folder
        self.groups = groups
        self.urgency = urgency
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

    /// Whether somebody waits for what comes of it.
    package var urgency: ExtensionUrgency {
        switch self {
        case .contentRequest(let request, _, _, _), .applicationEvent(let request, _, _):
            request == .install || request == .update ? .foreground : .background
        case .finished(let request, _), .failed(let request, _), .challenge(let request, _):
            request.isEssential ? .foreground : .background
        }
    }

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

/// What happens to an extension's process, told in the order in which it happened.
package enum ExtensionNews: Hashable, Sendable {
    /// Its process is there.
    case launched
    /// There is none, and why.
    case launchFailed(String)
    /// It uses more memory than before this run: near the limit, or beyond it.
    case memory(peak: Int64, MemoryRule.Verdict)
    /// It does not run any more, and holds no file lock.
    case stopped
    /// It was not stopped: it holds a lock of this file.
    case locked(String)
    /// extensionWillTerminate() has returned.
    case endNoted
    /// It was reaped. The text says how it ended.
    case ended(String, memoryPeak: Int64)
}

/// Starts, calls, stops and ends extensions, as `ExtensionLife` says; one process for each app.
///
/// Everything is called on the service's executor. What is not `async` is begun at once, in the order of the calls; what
/// came of it is news, never told from inside the call. Nothing of it has an effect on a process that is gone.
package protocol ExtensionRunner: Sendable {
    /// What extensions are closed off with; empty where they are no processes.
    nonisolated var sandboxReports: [SandboxReport] { get }
    /// Who is told of the processes from now on.
    func report(to listener: @escaping @Sendable (_ app: String, ExtensionNews) -> Void) async
    /// Launches a process for the app; the one before was reaped.
    func start(_ target: ExtensionTarget)
    /// Calls an entry point, one at a time. Returns when the process has answered or its socket was closed.
    func call(_ entry: EntryPoint, of app: String) async -> EntryPointOutcome
    /// Stops the process, unless it holds a file lock in the device folder.
    func stop(app: String)
    /// Lets a stopped process go on; a stop that is under way is forgotten.
    func resume(app: String)
    /// Calls extensionWillTerminate().
    func tellEnd(app: String)
    /// Closes its entry points, at which it exits.
    func close(app: String)
    func kill(app: String)
}

extension ExtensionRunner {
    package nonisolated var sandboxReports: [SandboxReport] { [] }
}
