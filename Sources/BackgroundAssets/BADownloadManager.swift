// The manager: what apps and extensions call.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Dispatch
public import Foundation

/// Schedules, promotes and cancels the downloads of an app and its extension, and keeps the two from disturbing each other.
///
/// There is one manager in a process: ``shared``. Its calls reach the device's asset service, which is started when it does
/// not run. Delegate methods, completion handlers and handlers of exclusive control run one at a time on a queue of the
/// framework, never on the main thread; they may call the manager and wait for it. Apple does not say which queue it uses;
/// do not rely on one.
///
/// Calls block their thread until the service has answered, which takes microseconds, or until it has started, which takes
/// longer. Those that throw say why in an `NSError`: see ``BAErrorCode``.
///
/// `@unchecked Sendable`: the one stored property is Sendable.
open class BADownloadManager: NSObject, @unchecked Sendable {
    /// The manager of this process.
    ///
    /// In an app's process it speaks for the app, in an extension's process for the extension.
    open class var shared: BADownloadManager { one }

    private static let one: BADownloadManager = {
        let environment = ProcessInfo.processInfo.environment
        RepairProbe.checkAtStart(environment: environment)
        let isExtension = environment[EnvironmentKey.isExtension] == "1"
        return BADownloadManager(
            connector: isExtension ? InheritedConnector() : AppConnector(environment: environment))
    }()

    let session: ManagerSession

    /// Runs calls whose caller does not wait for them.
    private let background = DispatchQueue(label: "org.backgroundassets.calls", attributes: .concurrent)

    /// Not available: use ``shared``.
    @available(*, unavailable, message: "use BADownloadManager.shared")
    public override init() { preconditionFailure("BADownloadManager.init() is unavailable") }

    init(connector: any ServiceConnector) {
        session = ManagerSession(connector: connector)
        super.init()
    }

    /// Takes the messages about downloads while this process runs. It is held weakly.
    ///
    /// Messages begin when it is set; those from before are not repeated. A new delegate takes the place of the old one.
    /// The messages about failed and finished downloads go to the extension while no running process has a delegate with a
    /// method for them.
    open weak var delegate: (any BADownloadManagerDelegate)? {
        get { session.callbacks.delegate }
        set {
            if let newValue { Diagnostics.checkConformance(of: newValue) }
            session.callbacks.delegate = newValue
            session.delegateChanged()
        }
    }

    // MARK: Downloads

    /// Queues a download. The system fetches it at a moment it picks.
    ///
    /// - Parameter download: The download. Only an app extension that answers a content request may return essential ones;
    ///   they are not permitted here.
    /// - Throws: An error of ``BAErrorDomain`` with the reason, when it cannot be queued:
    ///   ``BAErrorCode/downloadAlreadyScheduled`` while another one has its identifier,
    ///   ``BAErrorCode/downloadEssentialDownloadNotPermitted`` for an essential one,
    ///   ``BAErrorCode/downloadAlreadyFailed`` for one that has failed, and ``BAErrorCode/downloadFailedToStart`` for one that
    ///   has finished or asks for something impossible: another scheme than https, a group that is not declared, an empty
    ///   identifier or one of more than 1024 bytes of UTF-8, a negative size. Before the app is first launched also
    ///   ``BAErrorCode/downloadWouldExceedAllowance`` and ``BAErrorCode/sessionDownloadDisallowedByDomain``.
    open func scheduleDownload(_ download: BADownload) throws {
        try start(download) { wire, wasRepeated in
            try session.requests.call(
                ManagerInterface.Schedule.self, ManagerInterface.Schedule.Parameters(download: wire),
                wasRepeated: &wasRepeated
            ).state
        }
    }

    /// Starts a download at once, whatever the policy for background downloads, or promotes one that is queued or running.
    ///
    /// It stays in the foreground until this process ends or loses its connection; then it goes on in the background. Bytes
    /// that were received are not fetched again. For a download that is in the foreground already nothing happens.
    ///
    /// - Parameter download: The download.
    /// - Throws: What ``scheduleDownload(_:)`` throws when it cannot be started;
    ///   ``BAErrorCode/callFromExtensionNotAllowed`` in an extension. Linux does not tell apps in the foreground from others,
    ///   so ``BAErrorCode/callFromInactiveProcessNotAllowed`` is not thrown.
    open func startForegroundDownload(_ download: BADownload) throws {
        try start(download) { wire, wasRepeated in
            try session.requests.call(
                ManagerInterface.StartForeground.self, ManagerInterface.StartForeground.Parameters(download: wire),
                wasRepeated: &wasRepeated
            ).state
        }
    }

    /// Cancels a download that is queued or running. What was received of it is deleted, and nobody is told.
    ///
    /// - Parameter download: The download.
    /// - Throws: An error of ``BAErrorDomain``; ``BAErrorCode/downloadNotScheduled`` when it was never scheduled or has
    ///   ended.
    open func cancel(_ download: BADownload) throws {
        DownloadRegistry.shared.remember(download)
        session.settle()
        try failing {
            _ = try session.requests.call(
                ManagerInterface.Cancel.self,
                ManagerInterface.Cancel.Parameters(uniqueIdentifier: download.content.uniqueIdentifier))
        }
    }

    /// Everything that is queued or running for the app, whether app or extension asked for it.
    ///
    /// The call waits for the service: keep it off the main thread. Inside exclusive control it gives a view that the other
    /// process does not change, if that uses exclusive control too.
    ///
    /// - Returns: The downloads in the order in which they were scheduled.
    /// - Throws: An error of ``BAErrorDomain`` when the service cannot be reached or does not accept this process.
    open func fetchCurrentDownloads() throws -> [BADownload] {
        session.settle()
        return try failing {
            let number = DownloadRegistry.shared.eventNumber
            let pages = try session.requests.collect(ManagerInterface.CurrentDownloads.self, Nothing())
            return pages.flatMap(\.downloads).map {
                DownloadRegistry.shared.object(ofReply: $0, askedAt: number)
            }
        }
    }

    /// Everything that is queued or running for the app, whether app or extension asked for it.
    ///
    /// - Parameter completionHandler: Takes the downloads, or an empty array and the error; called once, on the framework's
    ///   queue. It is not `@Sendable`, as on Apple's systems: what it captures is used there.
    open func fetchCurrentDownloads(completionHandler: @escaping ([BADownload], (any Error)?) -> Void) {
        let handler = HandedOver(completionHandler)
        let scope = CallbackScope.current
        background.async {
            let result = Result { try self.fetchCurrentDownloads() }
            self.session.callbacks.run(in: scope) {
                switch result {
                case .success(let downloads): handler.value(downloads, nil)
                case .failure(let error): handler.value([], error)
                }
            }
        }
    }

    /// Everything that is queued or running for the app, whether app or extension asked for it.
    ///
    /// The asynchronous form of ``fetchCurrentDownloads(completionHandler:)``. It blocks no thread of Swift's pool, and waits
    /// for the service also when the task is cancelled.
    ///
    /// - Throws: An error of ``BAErrorDomain`` when the service cannot be reached or does not accept this process.
    open var currentDownloads: [BADownload] {
        get async throws {
            try await withCheckedThrowingContinuation { continuation in
                background.async { continuation.resume(with: Result { try self.fetchCurrentDownloads() }) }
            }
        }
    }

    // MARK: Exclusive control

    /// Asks for exclusive control over the app's and the extension's assets.
    ///
    /// Returns at once. The other process gets no exclusive control until the handler has returned. A process that ends
    /// while it has control gives it back.
    ///
    /// - Parameter performHandler: Called once on the framework's queue: with `true` and no error while this process has
    ///   exclusive control, else with `false` and the error. It is not `@Sendable`: what it captures is used there.
    @available(*, deprecated, message: "use the asynchronous withExclusiveControl(_:)")
    open func withExclusiveControl(_ performHandler: @escaping (Bool, (any Error)?) -> Void) {
        perform(HandedOver(performHandler), before: nil)
    }

    /// Asks for exclusive control over the app's and the extension's assets until a date.
    ///
    /// Returns at once.
    ///
    /// - Parameters:
    ///   - date: When to give up waiting. With a date that is not in the future it is tried once.
    ///   - performHandler: Called once on the framework's queue: with `true` and no error while this process has exclusive
    ///     control, else with `false` and the error.
    @available(*, deprecated, message: "use the asynchronous withExclusiveControl(before:_:)")
    open func withExclusiveControl(
        beforeDate date: Date, perform performHandler: @escaping (Bool, (any Error)?) -> Void
    ) {
        perform(HandedOver(performHandler), before: date)
    }

    /// Runs code with exclusive control over the app's and the extension's assets.
    ///
    /// Waits until this process has exclusive control, runs `body` where the caller runs, and gives control back before it
    /// returns. So code of the main actor stays on the main actor, and need not be `@Sendable`.
    ///
    /// - Parameter body: The code. Do not ask for exclusive control in it: it would wait for itself.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; an error of ``BAErrorDomain`` when control cannot be had; `CancellationError` when the
    ///   task is cancelled while it waits.
    nonisolated(nonsending) public final func withExclusiveControl<ReturnType>(
        _ body: @escaping () throws -> sending ReturnType
    ) async throws -> sending ReturnType {
        try await exclusively(before: nil, body)
    }

    /// Runs code with exclusive control over the app's and the extension's assets, if it can be had before a date.
    ///
    /// - Parameters:
    ///   - date: When to give up waiting. With a date that is not in the future it is tried once.
    ///   - body: The code; it runs where the caller runs.
    /// - Returns: What `body` returns.
    /// - Throws: What `body` throws; an error of ``BAErrorDomain`` when control cannot be had before the date: Apple has no
    ///   code for that, so its code is that of ``BAErrorCode/downloadInvalid``, and the underlying error is `ETIMEDOUT`;
    ///   `CancellationError` when the task is cancelled while it waits.
    nonisolated(nonsending) public final func withExclusiveControl<ReturnType>(
        before date: Date, _ body: @escaping () throws -> sending ReturnType
    ) async throws -> sending ReturnType {
        try await exclusively(before: date, body)
    }
}

// MARK: - Behind the calls

extension BADownloadManager {
    /// Calls the service and makes its errors those of the framework.
    ///
    /// - Parameter otherwise: The code for what has none.
    private func failing<Result>(
        otherwise code: BAErrorCode = .downloadInvalid, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch {
            throw AssetsFailure.error(error, otherwise: code)
        }
    }

    private func start(
        _ download: BADownload, _ call: (WireDownload, inout Bool) throws -> Int64
    ) throws {
        switch download.state {
        case .failed:
            throw AssetsFailure.error(
                .downloadAlreadyFailed, "\(download.content.shownIdentifier) has failed already",
                remedy: "make a new download")
        case .finished:
            throw AssetsFailure.error(
                .downloadFailedToStart, "\(download.content.shownIdentifier) has finished already",
                remedy: "make a new download")
        case .created, .waiting, .downloading: break
        }
        if let obstacle = download.content.obstacle {
            throw AssetsFailure.error(.downloadFailedToStart, obstacle.reason, remedy: obstacle.remedy)
        }
        DownloadRegistry.shared.remember(download)
        session.settle()
        let number = DownloadRegistry.shared.eventNumber
        var wasRepeated = false
        let answered = try failing(otherwise: .downloadFailedToStart) {
            do {
                return try call(download.content.wire(state: download.state), &wasRepeated)
            } catch let error as ClientError where wasRepeated {
                // The service took the first call and died before its reply.
                guard case .refused(code: BAErrorCode.downloadAlreadyScheduled.rawValue, _, _) = error.kind,
                    let queued = try current(download.content.uniqueIdentifier)
                else { throw error }
                return queued.state
            }
        }
        guard let state = BADownload.State(rawValue: Int(clamping: answered)) else { return }
        download.life.noteReply(state, askedAt: number)
    }

    private func current(_ uniqueIdentifier: String) throws -> WireDownload? {
        try session.requests.collect(ManagerInterface.CurrentDownloads.self, Nothing())
            .flatMap(\.downloads).first { $0.uniqueIdentifier == uniqueIdentifier }
    }

    private func perform(_ handler: HandedOver<(Bool, (any Error)?) -> Void>, before date: Date?) {
        let scope = CallbackScope.current
        let session = session
        let request = ControlRequest(deadline: date) { outcome in
            session.callbacks.run(in: scope) {
                switch outcome {
                case .granted(let lease):
                    handler.value(true, nil)
                    session.release(lease)
                case .failed(let error): handler.value(false, error)
                case .cancelled: handler.value(false, CancellationError())
                }
            }
        }
        session.acquire(request)
    }

    nonisolated(nonsending) private func exclusively<ReturnType>(
        before date: Date?, _ body: () throws -> sending ReturnType
    ) async throws -> sending ReturnType {
        let lease = try await acquire(before: date)
        let result: ReturnType
        do {
            result = try body()
        } catch {
            await session.release(lease)
            throw error
        }
        await session.release(lease)
        return result
    }

    nonisolated(nonsending) private func acquire(before date: Date?) async throws -> ControlLease {
        try Task.checkCancellation()
        let grant = ControlGrant()
        let request = ControlRequest(deadline: date) { grant.end($0) }
        session.acquireNow(request)
        // Mostly nobody else holds it: then the caller goes on where it is. The functions below would leave its actor.
        if let outcome = grant.outcome { return try outcome.lease }
        return try await withTaskCancellationHandler {
            try await withCheckedContinuation { continuation in grant.await(continuation) }.lease
        } onCancel: {
            session.withdraw(request)
        }
    }
}
