// `serve`: a folder over https on this machine, with failures on demand, until Ctrl-C.
internal import AssetsOS
internal import CommandLineKit
internal import DevelopmentServer
internal import Glibc

extension AssetsTool {
    static func serve(_ context: Context) throws(Failure) -> Int32 {
        if context.values.has("list-faults") { return listFaults(context) }
        guard let folder = context.values.argument("directory") else {
            throw Failure(
                "there is no folder to serve", remedy: "name one, as in 'backgroundassets serve .'",
                status: ExitStatus.usage)
        }
        // Before any thread is made, so that Ctrl-C is taken here and nowhere else.
        Interrupts.block()
        let console = context.console
        let total = Guarded(ServedTotal())
        let authority = context.values.has("http") ? nil : try developmentAuthority(of: context)
        let server = try start(folder, context, authority) { record in
            let line = ServedRequest(record)
            total.withLock { $0.add(line) }
            if console.printsJSON {
                console.data(json: line)
            } else {
                console.data(line.text)
            }
        }
        announce(server, authority, context)
        _ = Interrupts.wait()
        try runToEnd { await server.stop() }
        console.say(total.withLock { $0.text })
        return ExitStatus.done
    }

    private static func listFaults(_ context: Context) -> Int32 {
        var table = Table([.init("FAULT"), .init("WHAT THE SERVER DOES")])
        for fault in Fault.allCases {
            if context.console.printsJSON {
                context.console.data(json: ListedFault(fault: fault.form, summary: fault.summary))
            } else {
                table.add([fault.form, fault.summary])
            }
        }
        print(table, ifEmpty: "there are no faults", context)
        return ExitStatus.done
    }

    private static func announce(
        _ server: StaticServer, _ authority: DevelopmentCertificateAuthority?, _ context: Context
    ) {
        let host = context.values.option("host") ?? "localhost"
        let address = ServedAddress(
            url: "\(server.isSecure ? "https" : "http")://\(host):\(server.port)",
            certificateAuthority: authority?.certificatePath)
        if context.console.printsJSON {
            context.console.data(json: address)
        } else {
            context.console.data(address.url)
            if let path = address.certificateAuthority { context.console.data("certificate authority: \(path)") }
        }
        context.console.say(
            "Ctrl-C ends it" + (server.isSecure ? "; devices trust the authority in Developer Mode" : ""))
    }

    private static func start(
        _ folder: String, _ context: Context, _ authority: DevelopmentCertificateAuthority?,
        log: @escaping @Sendable (AccessRecord) -> Void
    ) throws(Failure) -> StaticServer {
        // The parser has checked the range.
        let port = UInt16(context.values.number("port") ?? 0)
        let identity: TLSIdentity?
        let faults: FaultPlan
        do throws(DevelopmentServerError) {
            let host = context.values.option("host")
            let names = ["localhost", "127.0.0.1", "::1"] + (host.map { [$0] } ?? [])
            identity = try authority?.issue(for: distinct(names))
            faults = try FaultPlan(parsing: context.values.all("fault"))
        } catch {
            throw Failure(error)
        }
        let started = try runToEnd { () -> Result<StaticServer, DevelopmentServerError> in
            do throws(DevelopmentServerError) {
                return .success(
                    try await StaticServer.start(folder: folder, port: port, tls: identity, faults: faults, log: log))
            } catch {
                return .failure(error)
            }
        }
        return try started.mapError { Failure($0) }.get()
    }

    /// The authority in the device's folder, which its service trusts in Developer Mode.
    private static func developmentAuthority(
        of context: Context
    ) throws(Failure) -> DevelopmentCertificateAuthority {
        let root = try context.service.location().root
        do throws(SystemCallError) { try makeFolders(root) } catch {
            throw Failure("the device's folder \(root) cannot be made: \(error)", remedy: "name another with --device")
        }
        do throws(DevelopmentServerError) {
            return try DevelopmentCertificateAuthority(folder: root + "/DevelopmentCA")
        } catch {
            throw Failure(error)
        }
    }

    private static func makeFolders(_ path: String) throws(SystemCallError) {
        var folder = ""
        for part in path.split(separator: "/") {
            folder += "/" + part
            if mkdir(folder, 0o700) == -1 && errno != EEXIST && errno != EROFS && errno != EACCES {
                throw SystemCallError(call: "mkdir", number: errno)
            }
        }
        // Folders on the way may be closed to us; what counts is the last one.
        _ = try Descriptor.directory(path)
    }

    private static func distinct(_ names: [String]) -> [String] {
        names.enumerated().filter { names.firstIndex(of: $0.element) == $0.offset }.map(\.element)
    }

    /// Runs asynchronous work on this thread until it has ended.
    private static func runToEnd<Value: Sendable>(
        _ body: @escaping @Sendable () async -> Value
    ) throws(Failure) -> Value {
        let loop: EventLoop
        do throws(SystemCallError) { loop = try EventLoop() } catch { throw Failure("\(error)") }
        let result = Guarded<Value?>(nil)
        Task(executorPreference: loop) {
            let value = await body()
            result.withLock { $0 = value }
            loop.stop()
        }
        loop.run()
        guard let value = result.withLock({ $0 }) else { preconditionFailure("the loop ended before its work") }
        return value
    }
}

/// A line of the catalogue.
private struct ListedFault: Encodable {
    var fault: String
    var summary: String
}

/// Where the server is.
private struct ServedAddress: Encodable {
    var url: String
    /// Nil without encryption.
    var certificateAuthority: String?

    private enum CodingKeys: String, CodingKey {
        case url
        case certificateAuthority = "certificate_authority"
    }
}

/// One answered request: a line of the log, as text or JSON.
private struct ServedRequest: Encodable {
    var time: Double
    var connection: Int
    var method: String
    var path: String
    var range: String?
    var status: Int
    var bytesSent: Int64
    var isComplete: Bool
    /// The rule that was applied; nil without.
    var fault: String?

    init(_ record: AccessRecord) {
        time = record.time / .seconds(1)
        connection = record.connection
        method = record.method
        path = record.method.isEmpty ? "" : "/" + record.path
        range = record.range
        status = record.status
        bytesSent = record.bytesSent
        isComplete = record.isComplete
        fault = record.fault.isEmpty ? nil : record.fault
    }

    var text: String {
        let request = method.isEmpty ? "(unreadable request)" : "\(method) \(path)"
        let parts = [
            Format.date(time), String(status), request, range ?? "",
            Format.bytes(bytesSent) + (isComplete ? "" : ", cut short"), fault.map { "fault \($0)" } ?? "",
        ]
        return TerminalText.printable(parts.filter { !$0.isEmpty }.joined(separator: "  "))
    }

    private enum CodingKeys: String, CodingKey {
        case time, connection, method, path, range, status, fault
        case bytesSent = "bytes_sent"
        case isComplete = "complete"
    }
}

/// What is said at the end.
private struct ServedTotal {
    private var requests = 0
    private var bytes: Int64 = 0
    private let start = MonotonicClock.now

    mutating func add(_ request: ServedRequest) {
        requests += 1
        bytes += request.bytesSent
    }

    var text: String {
        let time = Format.duration(MonotonicClock.now - start)
        return "served \(requests) \(requests == 1 ? "request" : "requests"), \(Format.bytes(bytes)), in \(time)"
    }
}

extension Failure {
    fileprivate init(_ error: DevelopmentServerError) {
        switch error.code {
        case .folder: self.init(error.description, remedy: "give a folder that you may read")
        case .port: self.init(error.description, remedy: "choose another with --port, or none for a free one")
        case .certificate: self.init(error.description)
        case .fault:
            self.init(
                error.description, remedy: "see 'backgroundassets serve --list-faults'", status: ExitStatus.usage)
        }
    }
}
