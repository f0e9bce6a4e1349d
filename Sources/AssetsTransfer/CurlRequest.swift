// One request as libcurl's easy handle.
internal import AssetsModel
internal import AssetsOS
internal import CCurl

/// An easy handle with all that belongs to it; freed exactly once, after it has left the multi handle.
final class CurlRequest {
    /// What libcurl reads from a socket at a time. A record of TLS has 16 KiB, so more than a few of them gains nothing;
    /// libcurl reads up to a hundred times before another transfer has its turn, which this bounds.
    private static let receiveBufferBytes = 64 << 10
    private static let userAgent = "BackgroundAssets/1"

    let task: TransportTask
    let easy: UnsafeMutableRawPointer
    /// nil once cancelled.
    var handler: (any TransportHandler)?
    /// The failure to tell instead of what libcurl makes of an aborted transfer.
    var ownFailure: TransportFailure?
    var isPaused = false
    /// Whether others go before it.
    var isDiscretionary = false
    private var socket: Int32?
    private var usesProxy = false
    unowned let transport: CurlTransport
    var reader = ResponseHeadReader()
    private var fields: UnsafeMutablePointer<curl_slist>?
    /// libcurl writes its text for people here.
    private let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    init?(_ task: TransportTask, handler: any TransportHandler, transport: CurlTransport) {
        guard let easy = curl_easy_init() else {
            message.deallocate()
            return nil
        }
        self.easy = easy
        self.task = task
        self.handler = handler
        self.transport = transport
        message.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_slist_free_all(fields)
        message.deallocate()
    }

    /// False when the request cannot be made.
    func configure(_ request: TransportRequest, _ trust: CurlTrust, allowsHTTP2: Bool) -> Bool {
        var setup = CurlSetup(easy: easy)
        setup.set(CURLOPT_URL, request.url)
        setup.set(CURLOPT_PROTOCOLS_STR, request.allowsHTTP ? "http,https" : "https")
        setup.set(CURLOPT_FOLLOWLOCATION, 0)
        let isShared = allowsHTTP2 && request.allowsHTTP2
        setup.set(CURLOPT_HTTP_VERSION, isShared ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        setup.set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        setup.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        setup.set(CURLOPT_NETRC, 0)
        // Signals would hit the whole process; a dead resolver must not hold the loop at the end.
        setup.set(CURLOPT_NOSIGNAL, 1)
        setup.set(CURLOPT_QUICK_EXIT, 1)
        setup.set(CURLOPT_TCP_KEEPALIVE, 1)
        setup.set(CURLOPT_BUFFERSIZE, Self.receiveBufferBytes)
        setup.set(CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.milliseconds)
        setup.set(CURLOPT_LOW_SPEED_LIMIT, Int(clamping: request.stallRate))
        setup.set(CURLOPT_LOW_SPEED_TIME, max(1, request.stallTimeout.milliseconds / 1000))
        setup.set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
        setup.set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(message))
        setProxy(request.proxy, &setup)
        transport.sockets.watch(&setup)
        trust.apply(to: &setup, withExtra: request.trustsExtraAuthorities)
        // libcurl compares pins before it gives a request a connection of another.
        if !request.pins.isEmpty {
            setup.set(CURLOPT_PINNEDPUBLICKEY, request.pins.map { "sha256//" + $0 }.joined(separator: ";"))
        }
        isDiscretionary = request.isDiscretionary
        setMethod(request, &setup)
        setFields(request, &setup)
        setCallbacks(&setup)
        return setup.isComplete
    }

    /// Never what libcurl finds in the environment: which proxy is used was decided, and its credentials stay out of the
    /// URL, which libcurl shows in its messages.
    private func setProxy(_ proxy: ProxyServer?, _ setup: inout CurlSetup) {
        usesProxy = proxy != nil
        setup.set(CURLOPT_PROXY, proxy?.description ?? "")
        setup.set(CURLOPT_NOPROXY, "")
        guard let proxy else { return }
        if let user = proxy.user { setup.set(CURLOPT_PROXYUSERNAME, user) }
        if let password = proxy.password { setup.set(CURLOPT_PROXYPASSWORD, password) }
    }

    private func setMethod(_ request: TransportRequest, _ setup: inout CurlSetup) {
        if !request.body.isEmpty || request.method == "POST" {
            setup.set(CURLOPT_POSTFIELDSIZE, request.body.count)
            request.body.withUnsafeBytes { bytes in
                // libcurl takes no null pointer for an empty body.
                setup.set(
                    CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress ?? .init(message)))
            }
        }
        if request.method != "GET" || !request.body.isEmpty {
            setup.set(CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    private func setFields(_ request: TransportRequest, _ setup: inout CurlSetup) {
        func has(_ name: String) -> Bool { request.headers.contains { ASCIIText.isEqual($0.name, name) } }
        for field in request.headers {
            // With a semicolon libcurl sends a field without value instead of leaving it out.
            add(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)", &setup)
        }
        if !has("User-Agent") { setup.set(CURLOPT_USERAGENT, Self.userAgent) }
        // What libcurl would add by itself to a request with a body.
        add("Expect:", &setup)
        if !request.body.isEmpty, !has("Content-Type") { add("Content-Type:", &setup) }
        setup.set(CURLOPT_HTTPHEADER, UnsafeMutableRawPointer(fields))
    }

    private func add(_ line: String, _ setup: inout CurlSetup) {
        guard let longer = curl_slist_append(fields, line) else {
            setup.isComplete = false
            return
        }
        fields = longer
    }

    private func setCallbacks(_ setup: inout CurlSetup) {
        let me = Unmanaged.passUnretained(self).toOpaque()
        setup.note(
            shim_curl_set_header(
                easy,
                { bytes, size, count, user in
                    guard let user else { return 0 }
                    let request = Unmanaged<CurlRequest>.fromOpaque(user).takeUnretainedValue()
                    return request.transport.receivedLine(request, bytes, size * count)
                }, me))
        setup.note(
            shim_curl_set_write(
                easy,
                { bytes, size, count, user in
                    guard let user else { return 0 }
                    let request = Unmanaged<CurlRequest>.fromOpaque(user).takeUnretainedValue()
                    return request.transport.receivedBytes(request, bytes, size * count)
                }, me))
    }

    /// libcurl uses this socket for it from now on, or none. It may have served another request before.
    func uses(_ socket: Int32?) {
        guard socket != self.socket else { return }
        self.socket = socket
        markSocket()
    }

    /// Has the kernel and the network treat what is sent as the request is to be treated.
    func markSocket() {
        if let socket { SocketPriority.set(socket, isDiscretionary: isDiscretionary) }
    }

    /// What libcurl's result means; nil for success.
    func failure(_ code: CURLcode) -> TransportFailure? {
        if let ownFailure { return ownFailure }
        guard code != CURLE_OK else { return nil }
        let text = message[0] != 0 ? String(cString: message) : String(cString: curl_easy_strerror(code))
        return CurlFailure(
            code: code, text: text, osError: info(CURLINFO_OS_ERRNO), isConnected: isConnected, usesProxy: usesProxy,
            connectStatus: info(CURLINFO_HTTP_CONNECTCODE), verifyResult: info(CURLINFO_SSL_VERIFYRESULT)
        ).described
    }

    private func info(_ which: CURLINFO) -> Int {
        var value = 0
        shim_curl_getinfo_long(easy, which, &value)
        return value
    }

    /// The secure connection stood and the request was on its way.
    private var isConnected: Bool {
        var microseconds: curl_off_t = 0
        shim_curl_getinfo_offset(easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds)
        return microseconds > 0
    }
}

/// Sets options one after another and remembers whether all were taken.
struct CurlSetup {
    let easy: UnsafeMutableRawPointer
    var isComplete = true

    init(easy: UnsafeMutableRawPointer) { self.easy = easy }

    mutating func note(_ code: CURLcode) {
        if code != CURLE_OK { isComplete = false }
    }
    mutating func set(_ option: CURLoption, _ value: Int) { note(shim_curl_setopt_long(easy, option, value)) }
    mutating func set(_ option: CURLoption, _ value: String) { note(shim_curl_setopt_string(easy, option, value)) }
    mutating func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
        note(shim_curl_setopt_pointer(easy, option, value))
    }
}

extension Duration {
    /// Whole milliseconds, at least one.
    fileprivate var milliseconds: Int { max(1, Int(clamping: Int64(self / .milliseconds(1)))) }
}
