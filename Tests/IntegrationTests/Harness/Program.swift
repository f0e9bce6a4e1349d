// A started program: what it writes, line by line, and how it ends.
import AssetsOS
import Foundation
import Glibc

/// A thread that nobody waits for.
func onThread(_ body: @escaping @Sendable () -> Void) {
    let thread = Thread(block: body)
    thread.stackSize = 1 << 20
    thread.start()
}

/// A child process with its output kept.
final class Program: Sendable {
    let output: EventLog<String>
    let errors: EventLog<String>
    private let ended: EventLog<ChildExit>
    private let child: ChildProcess
    private let input: Guarded<Int32>

    var process: Int32 { child.process }
    var exit: ChildExit? { ended.all.first }

    /// - Parameters:
    ///   - inherited: Descriptors beside 0, 1 and 2; they become 3, 4, ...
    init(
        _ path: String, _ arguments: [String] = [], environment: [String: String], folder: String? = nil,
        inherited: [Int32] = []
    ) throws {
        let name = (path as NSString).lastPathComponent
        output = EventLog("output of \(name)")
        errors = EventLog("errors of \(name)")
        ended = EventLog("end of \(name)")
        var (toChild, fromChild, errorsOfChild) = (try Self.pipe(), try Self.pipe(), try Self.pipe())
        let directory: Int32 = try folder.map { try Descriptor.directory($0).release() } ?? -1
        defer { if directory >= 0 { close(directory) } }
        child = try ChildProcess(
            ProgramStart(
                path: path, arguments: arguments, environment: environment,
                descriptors: [toChild.reading, fromChild.writing, errorsOfChild.writing] + inherited,
                directory: directory >= 0 ? directory : nil))
        for used in [toChild.reading, fromChild.writing, errorsOfChild.writing] { close(used) }
        (toChild.reading, fromChild.writing, errorsOfChild.writing) = (-1, -1, -1)
        input = Guarded(toChild.writing)
        let (lines, complaints) = (output, errors)
        let (linesEnd, complaintsEnd) = (fromChild.reading, errorsOfChild.reading)
        onThread { Self.read(linesEnd, into: lines) }
        onThread { Self.read(complaintsEnd, into: complaints) }
        onThread { [self] in ended.put(child.wait()) }
    }

    deinit { closeInput() }

    /// Writes a line to the program's standard input.
    func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        input.withLock { _ = send(bytes, to: $0) }
    }

    func closeInput() {
        input.withLock { descriptor in
            if descriptor >= 0 { close(descriptor) }
            descriptor = -1
        }
    }

    func send(signal: Int32) throws { try child.send(signal: signal) }

    func end(within limit: Duration = .seconds(120)) async throws -> ChildExit {
        try await ended.first(within: limit, "end of process \(process)") { _ in true }
    }

    /// Everything it wrote, after its end.
    func result(within limit: Duration = .seconds(120)) async throws -> ProgramResult {
        let exit = try await end(within: limit)
        // The readers close their logs when the pipes end, which is after the last line.
        _ = try? await output.first(from: .max, within: limit, "end of output") { _ in false }
        _ = try? await errors.first(from: .max, within: limit, "end of errors") { _ in false }
        return ProgramResult(exit: exit, output: output.all, errors: errors.all)
    }

    /// Runs a program to its end.
    static func run(
        _ path: String, _ arguments: [String], environment: [String: String] = ProcessEnvironment.current,
        folder: String? = nil, within limit: Duration = .seconds(120)
    ) async throws -> ProgramResult {
        let program = try Program(path, arguments, environment: environment, folder: folder)
        program.closeInput()
        return try await program.result(within: limit)
    }

    private func send(_ bytes: [UInt8], to descriptor: Int32) -> Int {
        descriptor < 0 ? -1 : Glibc.write(descriptor, bytes, bytes.count)
    }

    private static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        try check("pipe") { Glibc.pipe(&ends) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func read(_ descriptor: Int32, into log: EventLog<String>) {
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var rest = Data()
        while true {
            let data = handle.availableData
            if data.isEmpty { break }
            rest.append(data)
            while let stop = rest.firstIndex(of: UInt8(ascii: "\n")) {
                log.put(String(decoding: rest[rest.startIndex..<stop], as: UTF8.self))
                rest = Data(rest[(stop + 1)...])
            }
        }
        if !rest.isEmpty { log.put(String(decoding: rest, as: UTF8.self)) }
        log.close()
    }
}

/// What a program said and how it ended.
struct ProgramResult: Sendable {
    var exit: ChildExit
    var output: [String]
    var errors: [String]

    /// The lines of the output as values.
    func values<Value: Decodable>(_ type: Value.Type) throws -> [Value] {
        try output.map { try JSONDecoder().decode(Value.self, from: Data($0.utf8)) }
    }
}
