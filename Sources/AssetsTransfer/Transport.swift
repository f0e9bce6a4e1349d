// The seam between transfers and the network: libcurl in production, a script in simulations.
package import AssetsModel
package import AssetsOS

/// Names one running request of one transport.
package struct TransportTask: Hashable, Sendable {
    package let number: UInt64
    package init(number: UInt64) { self.number = number }
}

/// One request to one server. Redirects are not followed below the seam.
package struct TransportRequest: Hashable, Sendable {
    package var url: String
    package var method: String
    /// Sent as they are; the transport adds Host, Content-Length and, where missing, User-Agent and Accept.
    package var headers: [HeaderField]
    package var body: [UInt8]
    /// Until the secure connection stands.
    package var connectTimeout: Duration
    /// A request that brings less than `stallRate` bytes a second for this long has stalled.
    package var stallTimeout: Duration
    package var stallRate: Int64
    /// Whether plain http may be used; https always may.
    package var allowsHTTP: Bool
    /// Whether others of the machine and of its network go before it.
    package var isDiscretionary: Bool
    /// Whether it may share a connection with others by HTTP/2, which cannot be paused as well as one of its own.
    package var allowsHTTP2: Bool
    /// Whether the transport's extra authorities are believed.
    package var trustsExtraAuthorities: Bool
    /// SHA-256 of public keys in Base64: the server's must be one of them. None: any that is trusted.
    package var pins: [String]
    /// nil: straight to the server.
    package var proxy: ProxyServer?

    package init(
        url: String, method: String = "GET", headers: [HeaderField] = [], body: [UInt8] = [],
        connectTimeout: Duration = PolicyNumbers.connectLimit, stallTimeout: Duration = PolicyNumbers.stallTime,
        stallRate: Int64 = PolicyNumbers.stallRate, allowsHTTP: Bool = false, isDiscretionary: Bool = false,
        allowsHTTP2: Bool = false, trustsExtraAuthorities: Bool = true, pins: [String] = [],
        proxy: ProxyServer? = nil
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        self.connectTimeout = connectTimeout
        self.stallTimeout = stallTimeout
        self.stallRate = stallRate
        self.allowsHTTP = allowsHTTP
        self.isDiscretionary = isDiscretionary
        self.allowsHTTP2 = allowsHTTP2
        self.trustsExtraAuthorities = trustsExtraAuthorities
        self.pins = pins
        self.proxy = proxy
    }
}

/// Who a transport tells of one request, on the transport's executor: one head, then bytes, then the end.
///
/// Every method may cancel its own or another task and start new ones.
package protocol TransportHandler: AnyObject {
    /// The final head: neither informational ones nor those of a proxy.
    func received(_ head: TransportHead)
    /// A piece of the body, valid during the call.
    func received(_ bytes: UnsafeRawBufferPointer)
    /// The whole response was received, or why not. The last call.
    func ended(_ failure: TransportFailure?)
}

/// Requests to servers. Used on one executor only, which its factory was given.
package protocol Transport: AnyObject {
    /// Never calls the handler before it has returned; a request that cannot be made ends with a failure. Keeps the
    /// handler until the end.
    func start(_ request: TransportRequest, handler: any TransportHandler) -> TransportTask
    /// Ends a request; its handler is not called any more. No effect on one that has ended.
    func cancel(_ task: TransportTask)
    /// Stops delivering and taking bytes.
    func pause(_ task: TransportTask)
    /// Goes on; may deliver bytes before it returns.
    func resume(_ task: TransportTask)
    /// Whether others go before a request that runs.
    func setDiscretionary(_ task: TransportTask, _ isDiscretionary: Bool)
    /// Breaks connections, idle ones too, that use an address of this machine other than these.
    func dropConnections(keeping addresses: [String])
    /// Cancels everything and closes all connections. The last call.
    func stop()
}

/// Makes the transport of an engine that runs on the executor given. Called once, on any thread.
package typealias TransportFactory = @Sendable (any LoopExecutor) -> any Transport
