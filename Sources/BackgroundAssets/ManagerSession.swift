// What a manager has with the service: its calls, its stream of events, its delegate.

internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import Dispatch
internal import Foundation

/// The connection of one manager with the service. It comes into being at the first use, and anew after the service died.
///
/// Three kinds of threads keep out of each other's way. Callers' threads call the service and wait for its reply. A thread
/// of its own reads the events. One serial queue runs everything of the app: delegate methods and handlers. So an app's
/// code may block in a callback on whatever the service has to say.
final class ManagerSession: Sendable {
    /// Limits of the session.
    private enum Limit {
        /// How long the service may take to open the stream of events.
        static let openMax = DispatchTimeInterval.seconds(30)
        /// The first and the longest wait before a lost stream is opened again.
        static let backoffMin = 0.1
        static let backoffMax = 30.0
        /// Stack of the thread that reads events.
        static let stackSize = 512 << 10
    }

    struct Stream {
        let name: String
        let connection: ServiceConnection
    }

    /// The answer to a message.
    struct Ended {
        let session: String
        let number: Int64
        let isHandled: Bool
    }

    /// What the service was told of the delegate.
    struct Announcement: Equatable {
        static let none = Announcement(isPresent: false, hearsProgress: true)

        var isPresent: Bool
        var hearsProgress: Bool
    }

    struct Content {
        var stream: Stream?
        var controls = ControlTable()
        /// Requests for exclusive control that the work queue has not asked for yet.
        var asks = 0
        /// What the service knows of the delegate in the open stream.
        var announced = Announcement.none
        /// Attempts to open a lost stream in a row.
        var attempts = 0
        var isRetryPlanned = false
        /// Callbacks that have ended and that the service has not been told of.
        var ended: [Ended] = []
        /// Announcements that the work queue has not come to yet.
        var announcements = 0
        var isClosed = false
    }

    let requests: RequestLine
    let callbacks: CallbackQueue
    private let connector: any ServiceConnector
    let content = Guarded(Content())

    /// Opens streams and asks for what belongs to a session, in order.
    let work = DispatchQueue(label: "org.backgroundassets.session")
    /// Marks the work queue, so that code that runs there does not wait for it.
    private let workKey = DispatchSpecificKey<Bool>()
    /// Sends what ends a callback.
    let answers = DispatchQueue(label: "org.backgroundassets.answers")

    init(connector: any ServiceConnector) {
        self.connector = connector
        requests = RequestLine(connector: connector)
        callbacks = CallbackQueue()
        work.setSpecific(key: workKey, value: true)
    }

    /// Ends the session for good.
    func close() {
        let stream = content.withLock { content in
            content.isClosed = true
            return content.stream
        }
        stream?.connection.close()
        requests.close()
    }

    // MARK: Delegate

    /// The delegate was set, replaced or taken away.
    func delegateChanged() {
        content.withLock { $0.announcements += 1 }
        work.async {
            self.announceDelegate()
            self.content.withLock { $0.announcements -= 1 }
        }
    }

    /// Waits until the service knows of the delegate that was set before, so that a download started after that finds it.
    func settle() {
        let isPending = content.withLock { content in
            content.announcements > 0 || content.stream == nil && callbacks.delegate != nil
        }
        guard isPending, DispatchQueue.getSpecific(key: workKey) != true else { return }
        work.sync { announceDelegate() }
    }

    /// What the service is to know.
    private var announcement: Announcement {
        Announcement(isPresent: callbacks.delegate != nil, hearsProgress: callbacks.hearsProgress)
    }

    /// On the work queue.
    private func announceDelegate() {
        let now = announcement
        let (isOpen, announced, isClosed) = content.withLock { ($0.stream != nil, $0.announced, $0.isClosed) }
        guard !isClosed, now.isPresent || isOpen, isOpen ? now != announced : true else { return }
        do {
            let name = try inSession { name, wasRepeated in
                _ = try requests.call(
                    ManagerInterface.SetDelegate.self,
                    ManagerInterface.SetDelegate.Parameters(
                        session: name, present: now.isPresent, progress: now.hearsProgress),
                    wasRepeated: &wasRepeated)
                return name
            }
            content.withLock { content in
                content.attempts = 0
                if content.stream?.name == name { content.announced = now }
            }
        } catch {
            // A refusal is the service's decision: it is asked again at the next use. Anything else may pass.
            if case .refused? = (error as? ClientError)?.kind { return }
            if now.isPresent { planRetry() }
        }
    }

    private func planRetry() {
        guard connector.canReconnect else { return }
        let attempt: Int? = content.withLock { content in
            guard !content.isRetryPlanned, !content.isClosed else { return nil }
            content.isRetryPlanned = true
            content.attempts += 1
            return content.attempts
        }
        guard let attempt else { return }
        let longest = min(Limit.backoffMin * pow(2, Double(min(attempt - 1, 16))), Limit.backoffMax)
        work.asyncAfter(deadline: .now() + Double.random(in: longest / 2...longest)) {
            self.content.withLock { $0.isRetryPlanned = false }
            self.announceDelegate()
        }
    }

    // MARK: Stream of events

    /// The name of the open session; opens one. On the work queue.
    private func openSession() throws -> String {
        if let name = content.withLock({ $0.stream?.name }) { return name }
        let connection = try connector.openEvents()
        let opening = Opening()
        let reader = Thread { self.read(connection, opening: opening) }
        reader.name = "asset events"
        reader.stackSize = Limit.stackSize
        reader.start()
        do {
            return try opening.wait(Limit.openMax)
        } catch {
            connection.close()
            throw error
        }
    }

    /// Makes a call that names the session. On the work queue.
    ///
    /// When the service was replaced since the session was opened the call is made again in a new one.
    func inSession<Result>(_ call: (String, inout Bool) throws -> Result) throws -> Result {
        let name = try openSession()
        var wasRepeated = false
        do {
            return try call(name, &wasRepeated)
        } catch let error as ClientError {
            guard connector.canReconnect, wasRepeated || Self.isUnknownSession(error) else { throw error }
        }
        content.withLock { $0.stream?.name == name ? $0.stream?.connection : nil }?.close()
        lost(name)
        return try call(try openSession(), &wasRepeated)
    }

    private static func isUnknownSession(_ error: ClientError) -> Bool {
        if case .refused(BAErrorCode.callerConnectionInvalid.rawValue, _, _) = error.kind { return true }
        return false
    }

    /// Reads events until the stream ends. On a thread of its own.
    private func read(_ connection: ServiceConnection, opening: Opening) {
        var name: String?
        var failure = AssetsFailure.error(.callerConnectionInvalid, "the service ended the session")
        do {
            try connection.stream(ManagerInterface.Events.self, Nothing()) { reply in
                for event in reply.events {
                    if let name {
                        take(event, session: name)
                    } else if event.kind == "session", let session = event.session {
                        name = session
                        guard opened(Stream(name: session, connection: connection)) else { return false }
                        opening.finish(.success(session))
                    }
                }
                return true
            }
        } catch {
            if name == nil { failure = AssetsFailure.error(error) }
            opening.finish(.failure(error))
        }
        connection.close()
        opening.finish(.failure(failure))
        if let name { lost(name) }
    }

    private func opened(_ stream: Stream) -> Bool {
        content.withLock { content in
            if content.isClosed { return false }
            content.stream = stream
            content.announced = .none
            return true
        }
    }

    private func lost(_ name: String) {
        let requests: [ControlRequest] = content.withLock { content in
            guard content.stream?.name == name else { return [] }
            content.stream = nil
            content.announced = .none
            return content.controls.lost()
        }
        for request in requests {
            request.finish(
                .failed(AssetsFailure.error(.callerConnectionInvalid, "the connection to the service broke")))
        }
        if callbacks.delegate != nil { planRetry() }
    }

    // MARK: Events

    private func take(_ event: ManagerInterface.Event, session: String) {
        switch event.kind {
        case "control-granted", "control-refused":
            guard let ticket = event.ticket else { return }
            let isGranted = event.kind == "control-granted"
            let action = content.withLock { content in
                content.controls.word(on: ticket, granted: isGranted, reason: event.failure?.reason)
            }
            perform(action, session: session, ticket: ticket)
        case "challenge":
            if let challenge = event.challenge { take(challenge, of: event, session: session) }
        default:
            guard let wire = event.download, let message = DownloadMessage(event) else { return }
            let download = DownloadRegistry.shared.object(ofEvent: wire)
            if case .failed(let error) = message { download.life.noteFailure(error) }
            let number = event.number
            callbacks.deliver(message, of: download) { isHandled in
                if number != 0 {
                    self.answer(number, session: session, isHandled: isHandled)
                } else if !isHandled {
                    self.delegateLacked()
                }
            }
        }
    }

    /// The delegate is gone, or has no method for what nobody answers.
    private func delegateLacked() {
        let now = announcement
        if content.withLock({ $0.stream != nil && $0.announced != now }) { delegateChanged() }
    }

    /// Answers a message once its callback has ended. Never blocks.
    private func answer(_ number: Int64, session: String, isHandled: Bool) {
        let isFirst = content.withLock { content in
            content.ended.append(Ended(session: session, number: number, isHandled: isHandled))
            return content.ended.count == 1
        }
        if isFirst { answers.async { self.answerAll() } }
        if callbacks.delegate == nil { delegateChanged() }
    }

    /// Tells the service of all callbacks that have ended by now. On the queue of answers.
    private func answerAll() {
        var left = content.withLock { content in
            defer { content.ended = [] }
            return content.ended[...]
        }
        while let session = left.first?.session {
            let together = left.prefix(WireLimit.pageMax).prefix { $0.session == session }
            left = left.dropFirst(together.count)
            // A service that died asks again after it came back; there is nobody to tell.
            _ = try? requests.call(
                ManagerInterface.Answer.self,
                ManagerInterface.Answer.Parameters(
                    session: session, handled: together.filter(\.isHandled).map(\.number),
                    notHandled: together.filter { !$0.isHandled }.map(\.number)),
                isWaitedFor: false)
        }
    }
}

/// Waits for a stream's first event.
private final class Opening: Sendable {
    private let result = Guarded<Result<String, any Error>?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    /// The first result counts.
    func finish(_ outcome: Result<String, any Error>) {
        let isFirst = result.withLock { result in
            if result != nil { return false }
            result = outcome
            return true
        }
        if isFirst { semaphore.signal() }
    }

    func wait(_ limit: DispatchTimeInterval) throws -> String {
        _ = semaphore.wait(timeout: .now() + limit)
        guard let outcome = result.withLock({ $0 }) else {
            throw AssetsFailure.error(.callerConnectionInvalid, "the service did not open a session in time")
        }
        return try outcome.get()
    }
}
