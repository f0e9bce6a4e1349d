// The servers of a simulation: what each URL answers, and a log of what was asked.
internal import AssetsModel
internal import AssetsOS
internal import AssetsTransfer

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
        /// It brought a page of the network instead.
        package var isSignIn = false
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
        /// What was there before the first version that replaced it.
        var first: [String: [UInt8]] = [:]
        /// Requests of each URL that were served.
        var counts: [String: Int] = [:]
        var log: [Exchange] = []
        var isReachable = true

        /// One more request of a URL: it may lead to another version from now on.
        mutating func served(_ url: String, _ resource: ScriptedResource) -> ScriptedResource {
            let number = counts[url, default: 0]
            counts[url] = number + 1
            guard let version = resource.versions.last(where: { $0.request <= number }), version.body != resource.body
            else { return resource }
            if first[url] == nil { first[url] = contents[url] }
            resources[url]?.body = version.body
            resources[url]?.etag = version.etag
            resources[url]?.lastModified = version.lastModified
            contents[url] = ScriptedResource.content(of: version.body)
            return resources[url] ?? resource
        }
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

    /// The bytes of each version that a URL has had, and those it has now.
    package func allContents(of url: String) -> [[UInt8]] {
        state.withLock { state in
            guard let resource = state.resources[url], let now = state.contents[url] else { return [] }
            return [state.first[url] ?? now, now] + resource.versions.map { ScriptedResource.content(of: $0.body) }
        }
    }

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
            let served = state.served(request.url, resource)
            reply.latency = resource.latency
            let content = state.contents[request.url] ?? []
            reply.fill(answer, of: served, content, from: offset, ifRange: Self.field("If-Range", of: request))
            state.log[reply.exchange].status = reply.head?.status ?? 0
            state.log[reply.exchange].isSignIn = answer == .signIn
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

    static func head(_ status: Int, _ fields: [HeaderField] = []) -> TransportHead {
        TransportHead(status: status, headers: [HeaderField(name: "Date", value: date)] + fields)
    }
}
