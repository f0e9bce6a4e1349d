// The servers of a simulation: what each URL answers, and a log of what was asked.
package import AssetsModel
internal import AssetsOS
internal import AssetsTransfer

/// What a URL of the scripted server leads to.
package struct ScriptedResource: Sendable {
    /// Bytes of the file.
    package enum Body: Hashable, Sendable {
        /// So many bytes out of a seed.
        case generated(length: Int, seed: UInt64)
        case bytes([UInt8])
    }

    /// What one request gets.
    package enum Answer: Hashable, Sendable {
        case content
        /// This status without a body, with these fields.
        case status(Int, [HeaderField] = [])
        /// No response at all.
        case failure(TransportFailure)
        /// The content, but the connection breaks after so many bytes of it.
        case cut(after: Int)
    }

    package var body: Body
    /// With its quotes.
    package var etag: String?
    /// A date before `ScriptedServer.date`, as it stands in the header.
    package var lastModified: String?
    package var supportsRanges = true
    /// Only who sends this is served, by Basic in the realm "scripted".
    package var credential: Credential?
    /// Every request is redirected there.
    package var redirect: String?
    /// From the request to the head of the response.
    package var latency = Duration.milliseconds(20)
    /// nil for no limit; 0 for a body that never comes.
    package var bytesPerSecond: Int?
    /// What the first requests get; those after them get the content.
    package var answers: [Answer] = []

    package init(_ body: Body, etag: String? = "\"1\"", bytesPerSecond: Int? = nil, answers: [Answer] = []) {
        self.body = body
        self.etag = etag
        self.bytesPerSecond = bytesPerSecond
        self.answers = answers
    }

    /// All bytes of the file.
    package var content: [UInt8] {
        switch body {
        case .bytes(let bytes): bytes
        case .generated(let length, let seed): Self.generate(length, seed)
        }
    }

    private static func generate(_ length: Int, _ seed: UInt64) -> [UInt8] {
        var sequence = SeededSequence(seed: seed, stream: "content")
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            for start in stride(from: 0, to: length, by: 8) {
                let word = sequence.next()
                for offset in 0..<min(8, length - start) {
                    buffer[start + offset] = UInt8(truncatingIfNeeded: word >> (8 * offset))
                }
            }
            count = length
        }
    }
}

/// All servers of the simulated network. It outlives the service's processes.
package final class ScriptedServer: Sendable {
    /// The Date of every response.
    package static let date = "Tue, 14 Nov 2023 22:13:20 GMT"

    /// One request and what became of it.
    package struct Exchange: Hashable, Sendable {
        package var url: String
        /// From where on bytes were asked for.
        package var offset: Int
        /// 0 when there was no response.
        package var status = 0
        /// Bytes of the body that were sent.
        package var sent = 0
        /// What was asked for was sent to its last byte.
        package var isWhole = false
        package var time: Duration
    }

    /// What a transport has to do for one request.
    struct Reply {
        var exchange: Int
        var latency = Duration.zero
        var head: TransportHead?
        var body: ArraySlice<UInt8> = []
        var bytesPerSecond: Int?
        /// What the connection ends with once the body is sent.
        var failure: TransportFailure?
    }

    private struct State {
        var resources: [String: ScriptedResource] = [:]
        var contents: [String: [UInt8]] = [:]
        var log: [Exchange] = []
        var isReachable = true
    }

    private let loop: SimulatedLoop
    private let state = Guarded(State())

    package init(on loop: SimulatedLoop) { self.loop = loop }

    // MARK: The script

    /// Puts a resource at a URL, or another version of it.
    package func set(_ url: String, _ resource: ScriptedResource) {
        let content = resource.content
        state.withLock { state in
            state.resources[url] = resource
            state.contents[url] = content
        }
    }

    package func remove(_ url: String) {
        state.withLock { state in
            state.resources[url] = nil
            state.contents[url] = nil
        }
    }

    /// The bytes that a URL serves.
    package func content(of url: String) -> [UInt8]? { state.withLock { $0.contents[url] } }

    /// Whether the device has a network; without one connections break and no new ones are made.
    package var isReachable: Bool {
        get { state.withLock { $0.isReachable } }
        set { state.withLock { $0.isReachable = newValue } }
    }

    /// All requests so far, in their order.
    package var log: [Exchange] { state.withLock { $0.log } }

    /// Requests for one URL, in their order.
    package func log(of url: String) -> [Exchange] { log.filter { $0.url == url } }

    // MARK: For transports

    private static let challenge = "Basic realm=\"scripted\""
    static let offline = TransportFailure(
        kind: .connect, code: URLErrorCode.notConnectedToInternet, text: "the device has no network")
    static let broken = TransportFailure(
        kind: .partial, code: URLErrorCode.networkConnectionLost, text: "the connection broke")

    func reply(to request: TransportRequest) -> Reply {
        let now = loop.now
        let reply = state.withLock { state -> Reply in
            let offset = Self.offset(of: request)
            state.log.append(Exchange(url: request.url, offset: offset, time: now))
            var reply = Reply(exchange: state.log.count - 1)
            guard state.isReachable else {
                reply.failure = Self.offline
                return reply
            }
            guard let resource = state.resources[request.url] else {
                reply.head = Self.head(404)
                return reply
            }
            let isAdmitted = resource.credential.map {
                AuthorizationField.basic($0) == Self.field("Authorization", of: request)
            }
            if isAdmitted == false {
                reply.latency = resource.latency
                reply.head = Self.head(401, [HeaderField(name: "WWW-Authenticate", value: Self.challenge)])
                state.log[reply.exchange].status = 401
                return reply
            }
            let answer = resource.answers.first ?? .content
            state.resources[request.url]?.answers = Array(resource.answers.dropFirst())
            reply.latency = resource.latency
            let content = state.contents[request.url] ?? []
            reply.fill(answer, of: resource, content, from: offset, ifRange: Self.field("If-Range", of: request))
            state.log[reply.exchange].status = reply.head?.status ?? 0
            return reply
        }
        loop.note(
            "request \(reply.exchange) \(request.url) from \(Self.offset(of: request)): \(reply.head?.status ?? 0)")
        return reply
    }

    func sent(_ count: Int, of exchange: Int) { state.withLock { $0.log[exchange].sent += count } }

    func ended(_ exchange: Int, _ failure: TransportFailure?) {
        let sent = state.withLock { state in
            state.log[exchange].isWhole = failure == nil
            return state.log[exchange].sent
        }
        loop.note("request \(exchange) ended after \(sent) bytes: \(failure?.kind.rawValue ?? "whole")")
    }

    private static func field(_ name: String, of request: TransportRequest) -> String? {
        request.headers.first { ASCIIText.isEqual($0.name, name) }?.value
    }

    private static func offset(of request: TransportRequest) -> Int {
        guard let range = field("Range", of: request), range.hasPrefix("bytes="), range.hasSuffix("-") else { return 0 }
        return Int(range.dropFirst(6).dropLast()) ?? 0
    }

    fileprivate static func head(_ status: Int, _ fields: [HeaderField] = []) -> TransportHead {
        TransportHead(status: status, headers: [HeaderField(name: "Date", value: date)] + fields)
    }
}

extension ScriptedServer.Reply {
    fileprivate mutating func fill(
        _ answer: ScriptedResource.Answer, of resource: ScriptedResource, _ content: [UInt8], from offset: Int,
        ifRange validator: String?
    ) {
        bytesPerSecond = resource.bytesPerSecond
        switch answer {
        case .status(let status, let fields): head = ScriptedServer.head(status, fields)
        case .failure(let failure): self.failure = failure
        case .content, .cut:
            if let target = resource.redirect {
                head = ScriptedServer.head(302, [HeaderField(name: "Location", value: target)])
                return
            }
            send(content, of: resource, from: offset, ifRange: validator)
            if case .cut(let count) = answer, count < body.count {
                body = body.prefix(count)
                failure = ScriptedServer.broken
            }
        }
    }

    private mutating func send(
        _ content: [UInt8], of resource: ScriptedResource, from offset: Int, ifRange validator: String?
    ) {
        let isSameVersion = validator == nil || validator == resource.etag || validator == resource.lastModified
        let isPart = offset > 0 && resource.supportsRanges && isSameVersion
        var fields: [HeaderField] = []
        if let etag = resource.etag { fields.append(HeaderField(name: "ETag", value: etag)) }
        if let date = resource.lastModified { fields.append(HeaderField(name: "Last-Modified", value: date)) }
        guard !isPart || offset < content.count else {
            fields.append(HeaderField(name: "Content-Range", value: "bytes */\(content.count)"))
            head = ScriptedServer.head(416, fields)
            return
        }
        body = isPart ? content[offset...] : content[...]
        fields.append(HeaderField(name: "Content-Length", value: "\(body.count)"))
        if isPart {
            let range = "bytes \(offset)-\(content.count - 1)/\(content.count)"
            fields.append(HeaderField(name: "Content-Range", value: range))
        }
        head = ScriptedServer.head(isPart ? 206 : 200, fields)
    }
}
