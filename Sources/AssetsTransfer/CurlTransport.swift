// The transport of production: libcurl's multi interface, driven by one event loop.
package import AssetsModel
package import AssetsOS
internal import CCurl
internal import Glibc

/// Many requests on one loop thread: libcurl asks for readiness and timers, the loop reports them.
///
/// Everything but its making happens on the loop's thread. `stop` comes before the last reference goes.
package final class CurlTransport: Transport {
    /// What an engine decides about its connections.
    package struct Options: Sendable {
        /// A file of certificates in PEM form that are believed beside the machine's.
        package var extraAuthorities: String?
        /// Connections at a time. The queue says what runs, and whoever is started has a connection: a transfer that
        /// waited for one in here would hold a place and bring nothing.
        package var connectionsMax = PolicyNumbers.connectionsMax
        /// With more than these, idle connections are closed: as many as transfers have places.
        package var keptConnectionsMax = PolicyNumbers.foregroundTransfersMax + PolicyNumbers.backgroundTransfersMax
        /// nil for what this libcurl is safe with.
        package var allowsHTTP2: Bool?
        package var idleConnectionMax = PolicyNumbers.idleConnectionMax
        package init(extraAuthorities: String? = nil) { self.extraAuthorities = extraAuthorities }
    }

    private let loop: EventLoop
    private var multi: UnsafeMutableRawPointer
    private let options: Options
    private let allowsHTTP2: Bool
    private let trust: CurlTrust
    let sockets = CurlSockets()
    private var requests: [TransportTask: CurlRequest] = [:]
    private var tasks: [UnsafeMutableRawPointer: TransportTask] = [:]
    /// Requests that could not be made and whose handlers are told in a moment.
    private var failing: [TransportTask: any TransportHandler] = [:]
    private var watched: Set<Int32> = []
    private var timer: TimerToken?
    /// Closes the connections that nobody uses.
    private var idleTimer: TimerToken?
    private var lastNumber: UInt64 = 0
    private var isStopped = false
    /// libcurl must not be called from its own callbacks; what handlers ask for there is done right after.
    private var isInsideCurl = false
    private var postponed: [() -> Void] = []

    /// libcurl's global state; made once, before the first handle.
    ///
    /// A connection that the server has closed must be an error, not a signal: OpenSSL writes without MSG_NOSIGNAL.
    private static let isReady: Bool = {
        signal(SIGPIPE, SIG_IGN)
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }()

    /// Makes the transport of an engine whose executor is an `EventLoop`.
    package static func factory(_ options: Options = Options()) -> TransportFactory {
        { executor in
            guard let loop = executor as? EventLoop else { preconditionFailure("libcurl needs an event loop") }
            return CurlTransport(on: loop, options)
        }
    }

    /// Whether transfers may share connections by HTTP/2 with the libcurl that runs here, and why.
    package static let http2: HTTP2Rule = {
        guard let info = shim_curl_version()?.pointee else { preconditionFailure("libcurl without a version") }
        return HTTP2Rule(
            version: String(cString: info.version), number: info.version_num,
            isBuiltIn: info.features & CURL_VERSION_HTTP2 != 0)
    }()

    package init(on loop: EventLoop, _ options: Options = Options()) {
        precondition(Self.isReady, "libcurl cannot be used")
        self.loop = loop
        self.options = options
        allowsHTTP2 = options.allowsHTTP2 ?? Self.http2.isAllowed
        multi = Self.makeMulti(options, allowsHTTP2)
        trust = CurlTrust(extraAuthorities: options.extraAuthorities)
        connectCallbacks()
    }

    private static func makeMulti(_ options: Options, _ allowsHTTP2: Bool) -> UnsafeMutableRawPointer {
        guard let multi = curl_multi_init() else { preconditionFailure("libcurl has no memory") }
        shim_curlm_long(multi, CURLMOPT_PIPELINING, allowsHTTP2 ? Int(CURLPIPE_MULTIPLEX) : 0)
        shim_curlm_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, options.connectionsMax)
        shim_curlm_long(multi, CURLMOPT_MAXCONNECTS, options.keptConnectionsMax)
        return multi
    }

    deinit { precondition(isStopped, "stop() was not called") }

    private func connectCallbacks() {
        let me = Unmanaged.passUnretained(self).toOpaque()
        shim_curlm_socket(
            multi,
            { easy, fd, what, user, _ in
                guard let user else { return 0 }
                Unmanaged<CurlTransport>.fromOpaque(user).takeUnretainedValue().socketChanged(easy, fd, what)
                return 0
            }, me)
        shim_curlm_timer(
            multi,
            { _, milliseconds, user in
                guard let user else { return 0 }
                Unmanaged<CurlTransport>.fromOpaque(user).takeUnretainedValue().arm(milliseconds)
                return 0
            }, me)
    }

    // MARK: Transport

    package func start(_ request: TransportRequest, handler: any TransportHandler) -> TransportTask {
        precondition(!isStopped, "start after stop")
        lastNumber += 1
        let task = TransportTask(number: lastNumber)
        guard let made = CurlRequest(task, handler: handler, transport: self) else {
            failLater(task, handler, .memory, URLErrorCode.unknown, "out of memory")
            return task
        }
        requests[task] = made
        tasks[made.easy] = task
        if let idleTimer { loop.cancel(idleTimer) }
        idleTimer = nil
        let isConfigured = made.configure(request, trust, allowsHTTP2: allowsHTTP2)
        afterCurl { [unowned self] in
            guard requests[task] != nil else { return }
            if isConfigured, curl_multi_add_handle(multi, made.easy) == CURLM_OK { return }
            requests[task] = nil
            tasks[made.easy] = nil
            failLater(task, handler, .invalid, URLErrorCode.badURL, "the request cannot be made")
        }
        return task
    }

    package func cancel(_ task: TransportTask) {
        failing[task] = nil
        guard let request = requests.removeValue(forKey: task) else { return }
        tasks[request.easy] = nil
        request.handler = nil
        afterCurl { [unowned self] in
            curl_multi_remove_handle(multi, request.easy)
            planIdle()
        }
    }

    package func pause(_ task: TransportTask) { setPause(task, true) }

    package func resume(_ task: TransportTask) { setPause(task, false) }

    package func setDiscretionary(_ task: TransportTask, _ isDiscretionary: Bool) {
        guard let request = requests[task] else { return }
        request.isDiscretionary = isDiscretionary
        request.markSocket()
    }

    private func setPause(_ task: TransportTask, _ isPaused: Bool) {
        guard let request = requests[task], request.isPaused != isPaused else { return }
        // One call of libcurl may bring many pieces: from now on each is sent back.
        request.isPaused = isPaused
        afterCurl { [unowned self] in
            guard requests[task] != nil else { return }
            // Bytes that libcurl holds back are delivered inside this call.
            enter { curl_easy_pause(request.easy, request.isPaused ? CURLPAUSE_RECV : CURLPAUSE_CONT) }
        }
    }

    package func dropConnections(keeping addresses: [String]) {
        sockets.shutDown(keeping: addresses)
    }

    package func stop() {
        loop.checkIsolated()
        guard !isStopped else { return }
        isStopped = true
        failing = [:]
        for task in requests.keys.sorted(by: { $0.number < $1.number }) { cancel(task) }
        afterCurl { [self] in
            if let idleTimer { loop.cancel(idleTimer) }
            closeMulti()
        }
    }

    // MARK: Calls into libcurl

    /// Runs `body` now, or as soon as libcurl has returned.
    private func afterCurl(_ body: @escaping () -> Void) {
        if isInsideCurl { postponed.append(body) } else { body() }
    }

    private func enter(_ body: () -> Void) {
        precondition(!isInsideCurl, "libcurl was entered from its own callback")
        isInsideCurl = true
        body()
        isInsideCurl = false
        while !postponed.isEmpty {
            let bodies = postponed
            postponed = []
            for body in bodies { body() }
        }
    }

    private func drive(_ fd: Int32, _ mask: Int32) {
        guard !isStopped else { return }
        enter {
            var running: Int32 = 0
            curl_multi_socket_action(multi, fd, mask, &running)
        }
        tellEnds()
    }

    /// Takes one message at a time: a handler may cancel the request of the next.
    private func tellEnds() {
        var left: Int32 = 0
        while !isStopped, let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            let code = message.pointee.data.result
            guard let task = tasks.removeValue(forKey: easy), let request = requests.removeValue(forKey: task) else {
                continue
            }
            curl_multi_remove_handle(multi, easy)
            let failure = request.failure(code)
            request.handler?.ended(failure)
        }
        planIdle()
    }

    // MARK: Idle connections

    private func planIdle() {
        guard requests.isEmpty, idleTimer == nil, !isStopped else { return }
        idleTimer = schedule(after: options.idleConnectionMax) { $0.closeIdleConnections() }
    }

    /// libcurl closes what is idle only when it makes new connections: without any, all are given back with their owner.
    private func closeIdleConnections() {
        idleTimer = nil
        guard requests.isEmpty, !isStopped else { return }
        closeMulti()
        multi = Self.makeMulti(options, allowsHTTP2)
        connectCallbacks()
    }

    private func closeMulti() {
        if let timer { loop.cancel(timer) }
        timer = nil
        curl_multi_cleanup(multi)
        for fd in watched.sorted() { loop.unwatch(fd) }
        watched = []
    }

    private func failLater(
        _ task: TransportTask, _ handler: any TransportHandler, _ kind: TransportFailure.Kind, _ code: Int,
        _ text: String
    ) {
        failing[task] = handler
        _ = schedule(after: .zero) { transport in
            let handler = transport.failing.removeValue(forKey: task)
            handler?.ended(TransportFailure(kind: kind, code: code, text: text))
        }
    }

    // MARK: Calls from libcurl

    private func socketChanged(_ easy: UnsafeMutableRawPointer?, _ fd: Int32, _ what: Int32) {
        if let task = easy.flatMap({ tasks[$0] }) { requests[task]?.uses(what == CURL_POLL_REMOVE ? nil : fd) }
        if what == CURL_POLL_REMOVE {
            watched.remove(fd)
            return loop.unwatch(fd)
        }
        var readiness: EventLoop.Readiness = []
        if what & CURL_POLL_IN != 0 { readiness.insert(.read) }
        if what & CURL_POLL_OUT != 0 { readiness.insert(.write) }
        watched.insert(fd)
        do {
            try loop.watch(fd, for: readiness) { [unowned self] ready in self.ready(fd, ready) }
        } catch {
            // Out of kernel memory: without news of its socket the transfer ends as stalled and is tried again.
            watched.remove(fd)
        }
    }

    private func ready(_ fd: Int32, _ readiness: EventLoop.Readiness) {
        var mask: Int32 = 0
        if !readiness.isDisjoint(with: [.read, .hangUp]) { mask |= CURL_CSELECT_IN }
        if readiness.contains(.write) { mask |= CURL_CSELECT_OUT }
        if readiness.contains(.error) { mask |= CURL_CSELECT_ERR }
        drive(fd, mask)
    }

    private func arm(_ milliseconds: Int) {
        if let timer { loop.cancel(timer) }
        timer = nil
        guard milliseconds >= 0 else { return }
        timer = schedule(after: .milliseconds(milliseconds)) { transport in
            transport.timer = nil
            transport.drive(CURL_SOCKET_TIMEOUT, 0)
        }
    }

    /// The answer is how many bytes were taken; fewer than given ends the transfer.
    func receivedLine(_ request: CurlRequest, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
        guard request.handler != nil else { return 0 }
        switch request.reader.line(UnsafeRawBufferPointer(start: bytes, count: count)) {
        case .more:
            return count
        case .head(let head):
            request.handler?.received(head)
            return count
        case .malformed:
            request.ownFailure = TransportFailure(
                kind: .protocol, code: URLErrorCode.badServerResponse, text: "the server's answer has no proper head")
            return 0
        }
    }

    func receivedBytes(_ request: CurlRequest, _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
        guard let handler = request.handler else { return 0 }
        guard !request.isPaused else { return Int(CURL_WRITEFUNC_PAUSE) }
        handler.received(UnsafeRawBufferPointer(start: bytes, count: count))
        return count
    }

    // MARK: Timers

    /// A transport on its way through a timer.
    ///
    /// Unchecked: the timers of a loop fire on its thread, which is the only one that uses the transport.
    private struct Passage: @unchecked Sendable {
        weak var transport: CurlTransport?
        let body: (CurlTransport) -> Void
    }

    private func schedule(after delay: Duration, _ body: @escaping (CurlTransport) -> Void) -> TimerToken {
        let passage = Passage(transport: self, body: body)
        return loop.schedule(after: delay) {
            if let transport = passage.transport { passage.body(transport) }
        }
    }
}
