// aria2c as a service of its own, which is told what to do by its remote calls.
internal import AssetsOS
internal import BenchmarkKit
internal import FoundationEssentials
internal import Glibc
internal import RootHelperClient

/// A running aria2c. Each file has one connection, and is written as it comes.
final class Aria2 {
    private static let startLimit = Duration.seconds(10)
    private static let look: useconds_t = 200

    private let port: UInt16
    private let program: Program
    private let folder: String
    private let network: HelperNetwork?
    /// Its own where it is not in a network.
    var process: Int32 { program.process }

    /// - Parameters:
    ///   - folder: where it puts files.
    ///   - authority: a file of certificates that it believes.
    ///   - options: what else it is started with.
    ///   - network: on whose device's side it runs; nil for this machine's own.
    init(
        folder: String, authority: String, log: String, options: [String] = [], in network: HelperNetwork? = nil
    ) throws {
        try Folder.make(folder)
        self.folder = folder
        self.network = network
        port = try SilentPort.free()
        program = try Program(
            Program.find("aria2c"),
            [
                "--no-conf", "--quiet", "--enable-rpc", "--rpc-listen-port=\(port)", "-d", folder,
                "--ca-certificate=\(authority)", "--file-allocation=none", "--disk-cache=0", "--split=1",
            ] + options, log: log, in: network)
        let deadline = Deadline(in: Self.startLimit)
        while (try? connect()) == nil {
            guard program.isRunning, !deadline.hasPassed else {
                throw BenchError("aria2c does not start: \(program.lastWords)")
            }
            usleep(Self.look)
        }
    }

    private func connect() throws -> SharedDescriptor {
        if let network { return try network.connect(on: .device, port: port) }
        return SharedDescriptor(try LoopbackClient.connect(to: port))
    }

    func stop() { _ = program.end(SIGKILL) }

    func path(of name: String) -> String { "\(folder)/\(name)" }

    // MARK: Downloads

    /// Begins a download and returns its number.
    func add(_ url: String, as name: String) throws -> String {
        try call("addUri", #"[["\#(url)"],{"out":"\#(name)"}]"#)
    }

    /// Asks for something to be done with a download, and returns when aria2 has heard of it.
    func tell(_ method: String, _ download: String) throws {
        let _: String = try call(method, #"["\#(download)"]"#)
    }

    func pauseAll() throws { let _: String = try call("forcePauseAll", "[]") }

    /// "active", "paused", "complete", "removed", "error" or "waiting".
    func status(of download: String) throws -> String {
        struct Status: Decodable { var status: String }
        let status: Status = try call("tellStatus", #"["\#(download)",["status"]]"#)
        return status.status
    }

    func wait(until wanted: String, _ download: String, within limit: Duration) throws {
        let deadline = Deadline(in: limit)
        while try status(of: download) != wanted {
            guard !deadline.hasPassed else { throw BenchError("aria2c: a download is not \(wanted) within \(limit)") }
            usleep(Self.look)
        }
    }

    // MARK: Calls

    private struct Reply<Value: Decodable>: Decodable {
        struct Failure: Decodable { var message: String }
        var result: Value?
        var error: Failure?
    }

    /// `parameters` is a JSON array.
    private func call<Value: Decodable>(_ method: String, _ parameters: String) throws -> Value {
        let body = #"{"jsonrpc":"2.0","id":"1","method":"aria2.\#(method)","params":\#(parameters)}"#
        let head = "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n"
        let answer = try LoopbackClient.ask(connect(), head + "Connection: close\r\n\r\n" + body)
        guard let start = answer.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound else {
            throw BenchError("aria2c does not answer \(method)")
        }
        let reply = try JSONDecoder().decode(Reply<Value>.self, from: Data(answer[start...]))
        guard let result = reply.result else {
            throw BenchError("aria2c refuses \(method): \(reply.error?.message ?? "no reason")")
        }
        return result
    }
}
