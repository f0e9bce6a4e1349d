// A folder served over http or https on this machine, for trying downloads while developing.
package import AssetsOS
internal import Glibc

/// A running server with a thread of its own. It serves until `stop()`.
///
/// GET and HEAD with single byte ranges, If-Range, If-None-Match, keep-alive and pipelining. Nothing outside the folder
/// can be reached, links out of it included. Faults on demand: see `FaultPlan`.
package final class StaticServer: Sendable {
    private let loop: EventLoop
    private let core: ServerCore
    package let port: UInt16
    package let isSecure: Bool

    /// "https://localhost:8443", without a slash at the end.
    package var baseURL: String { "\(isSecure ? "https" : "http")://localhost:\(port)" }

    /// Serves `folder`; `port` 0 takes a free one. `log` is called on the server's thread once for every answer.
    ///
    /// `address` is an address of this machine; the default can be reached from nowhere else. A client that sends no
    /// whole request and takes no bytes for `idleMax` is cut off.
    package static func start(
        folder: String, address: String = "127.0.0.1", port: UInt16 = 0, tls: TLSIdentity? = nil,
        faults: FaultPlan = FaultPlan(), idleMax: Duration = .seconds(30),
        clock: any CalendarClock = SystemCalendarClock(),
        log: @escaping @Sendable (AccessRecord) -> Void
    ) async throws(DevelopmentServerError) -> StaticServer {
        let root = try failing(.folder, "The folder \(folder) cannot be served") { () throws(SystemCallError) in
            try Descriptor.directory(folder)
        }
        let context: TLSContext? = if let tls { try TLSContext(tls) } else { nil }
        let place = "Cannot listen on \(address), port \(port)"
        let listener = try failing(.port, place) { () throws(SystemCallError) in
            try ListeningSocket(address: address, port: port)
        }
        let bound = listener.port
        let loop = try failing(.port, place) { () throws(SystemCallError) in
            try EventLoop.start(name: "web server")
        }
        let site = Site(root: root, faults: faults, clock: clock, log: log)
        let core = ServerCore(loop: loop, listener: listener, tls: context, site: site, idleMax: idleMax)
        await core.start()
        return StaticServer(loop: loop, core: core, port: bound, isSecure: tls != nil)
    }

    private init(loop: EventLoop, core: ServerCore, port: UInt16, isSecure: Bool) {
        self.loop = loop
        self.core = core
        self.port = port
        self.isSecure = isSecure
    }

    /// Replaces the faults; all counts begin anew. Answers under way keep theirs.
    package func setFaults(_ plan: FaultPlan) async { await core.setFaults(plan) }

    /// Closes all connections and the port and ends the thread.
    package func stop() async {
        await core.shutDown()
        loop.stop()
    }

    private static func failing<R: ~Copyable>(
        _ code: DevelopmentServerError.Code, _ reason: String, _ body: () throws(SystemCallError) -> R
    ) throws(DevelopmentServerError) -> R {
        do throws(SystemCallError) { return try body() } catch {
            throw DevelopmentServerError(code, reason, cause: error)
        }
    }
}
