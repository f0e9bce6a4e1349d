// What the engine is asked for, and what it tells.
package import AssetsModel

/// One attempt to bring the bytes of one download into its partial file.
package struct TransferSpec: Sendable {
    /// The download's unique identifier; one transfer of it runs at a time.
    package var id: String
    package var url: String
    package var method: String
    package var headers: [HeaderField]
    package var body: [UInt8]
    /// Where the bytes go, in the engine's tree. The folder exists.
    package var partialPath: String
    /// Extended attributes that the file gets when it is made.
    package var marks: [String: String]
    /// What was last written down of the partial file; more may stand beside its bytes.
    package var resume: ResumePoint?
    /// Bytes that the app announced; 0 when unknown.
    package var expectedSize: Int64
    /// Whether another size is a failure.
    package var sizeMustMatch: Bool
    /// Bytes that may be received; more is refused as `allowanceExceeded`.
    package var sizeLimit: Int64?
    /// A web page in its place is the network's, unless its URL is called one.
    package var isManifest: Bool
    /// Whether a redirect may lead to that host (lower case, without port).
    package var admits: @Sendable (String) -> Bool
    /// Developer Mode: plain http to this machine.
    package var allowsLoopbackHTTP: Bool
    /// Developer Mode: servers with a certificate of the device's development authority.
    package var trustsExtraAuthorities: Bool
    /// The public keys that a host (lower case, without port) must have one of; none: any that is trusted.
    package var pins: @Sendable (String) -> [String]
    /// What is known for servers that ask who asks.
    package var authentication: TransferAuthentication
    package var transferClass: TransferClass
    /// What the app says that the file comes to.
    package var digest: ContentDigest?
    package var proxies: ProxySettings
    package var space: SpacePolicy

    package init(
        id: String, url: String, method: String = "GET", headers: [HeaderField] = [], body: [UInt8] = [],
        partialPath: String, marks: [String: String] = [:], resume: ResumePoint? = nil,
        expectedSize: Int64 = 0, sizeMustMatch: Bool = false,
        sizeLimit: Int64? = nil, isManifest: Bool = false,
        admits: @escaping @Sendable (String) -> Bool = { _ in true },
        allowsLoopbackHTTP: Bool = false, trustsExtraAuthorities: Bool = true,
        pins: @escaping @Sendable (String) -> [String] = { _ in [] },
        authentication: TransferAuthentication = TransferAuthentication(), transferClass: TransferClass,
        digest: ContentDigest? = nil, proxies: ProxySettings = ProxySettings(), space: SpacePolicy = SpacePolicy()
    ) {
        self.id = id
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        self.partialPath = partialPath
        self.marks = marks
        self.resume = resume
        self.expectedSize = expectedSize
        self.sizeMustMatch = sizeMustMatch
        self.sizeLimit = sizeLimit
        self.isManifest = isManifest
        self.admits = admits
        self.allowsLoopbackHTTP = allowsLoopbackHTTP
        self.trustsExtraAuthorities = trustsExtraAuthorities
        self.pins = pins
        self.authentication = authentication
        self.transferClass = transferClass
        self.digest = digest
        self.proxies = proxies
        self.space = space
    }
}

/// What happens in an attempt. Told on the engine's loop.
package enum TransferEvent: Hashable, Sendable {
    /// Right before `began`: so many bytes that were there are fetched again, and why.
    case startedOver(lost: Int64, String)
    /// The server sends the file. `expected` is 0 when it does not say how much; told again when it has to start over.
    case began(resumedAt: Int64, expected: Int64)
    /// Before it begins: the server was content with this credential.
    case authenticated(SpaceCredential)
    /// Whether from now on the attempt can stop at any byte, and another one goes on there. Until it is told: it cannot.
    case canStop(Bool)
    /// At most ten a second, and one before the end.
    case progress(received: Int64, expected: Int64)
    /// What to keep for the next attempt after a power cut: after every sync.
    case checkpoint(ResumePoint)
    /// All bytes have come; what is left is to write those that are not in the file yet, and to sync them.
    case gathered(unwritten: Int64)
    /// The last event.
    case ended(TransferOutcome)
}

/// How an attempt ended.
package enum TransferOutcome: Hashable, Sendable {
    /// All bytes are there and on stable storage. `resume` is nil when the version has no name, `digest` when nobody said
    /// what they must come to.
    case received(length: Int64, inode: UInt64, resume: ResumePoint?, digest: ContentDigest?)
    /// It was asked to stop, and its bytes are on stable storage: another attempt goes on there.
    case stopped
    /// Another attempt may succeed.
    case interrupted(Interruption)
    /// No other attempt would.
    case refused(DownloadFailure, Reason)
    /// The server asks something that nothing known answers. No connection is kept for it.
    case challenged(ServerChallenge)
}
