// One connection of a test: at most one file system, one network or one program, which ends with it.
internal import AssetsOS
internal import Glibc
internal import RootHelperClient

/// Networks by the numbers that tests know them by: who runs a program in one has another connection than who made it.
struct NetworkTable {
    private var pairs: [Int: NetworkPair] = [:]

    subscript(number: Int) -> NetworkPair? {
        get { pairs[number] }
        set { pairs[number] = newValue }
    }
}

final class ServedConnection {
    private let descriptor: Descriptor
    private let number: Int
    private let place: HelperPlace
    private let missing: [HelperService: String]
    private var fileSystem: MountedFileSystem?
    private var network: NetworkPair?
    private var child: ChildProcess?
    private(set) var isClosed = false

    var socket: Int32 { descriptor.rawValue }
    /// What becomes readable when the program has ended; -1 without one.
    private(set) var program: Int32 = -1

    init(
        _ descriptor: consuming Descriptor, number: Int, place: HelperPlace, missing: [HelperService: String]
    ) {
        self.descriptor = descriptor
        self.number = number
        self.place = place
        self.missing = missing
    }

    /// Answers the next request; closes when there is none, or one that nobody of ours would send.
    func answer(networks: inout NetworkTable) {
        do {
            guard let (request, descriptors) = try HelperPacket.receive(HelperRequest.self, from: descriptor) else {
                networks[number] = nil
                return close()
            }
            do {
                try carryOut(request, descriptors, &networks)
            } catch {
                try HelperPacket.send(HelperReply.failed("\(error)"), over: descriptor)
            }
        } catch {
            networks[number] = nil
            close()
        }
    }

    private func carryOut(
        _ request: HelperRequest, _ descriptors: [SharedDescriptor], _ networks: inout NetworkTable
    ) throws {
        switch request {
        case .describe:
            let missing = Dictionary(uniqueKeysWithValues: missing.map { ($0.key.rawValue, $0.value) })
            try reply(.described(missing: missing))
        case .makeFileSystem(let options):
            try check(isFree: .fileSystems)
            let made = try MountedFileSystem(options, at: "\(place.folder)/\(number)", for: place.user)
            fileSystem = made
            try reply(.fileSystem(path: made.path))
        case .cutPower(let seed):
            try own(fileSystem).cutPower(seed: seed)
            try reply(.done)
        case .mountAgain:
            try own(fileSystem).mountAgain()
            try reply(.done)
        case .makeNetwork:
            try check(isFree: .networks)
            let made = try NetworkPair()
            network = made
            networks[number] = made
            try reply(.network(number: number))
        case .changeNetwork(let change):
            try own(network).apply(change)
            try reply(.done)
        case .listen(let side, let port):
            try reply(with: try own(network).listen(on: side, port: port))
        case .connect(let side, let port):
            try reply(with: (try own(network).connect(on: side, port: port), port))
        case .takeNameQuestions:
            let file = "\(place.folder)/\(number).resolv.conf"
            try reply(with: try own(network).takeNameQuestions(naming: file))
        case .run(let number, let side, let path, let arguments, let environment):
            guard let pair = networks[number] else { throw HelperError("there is no network \(number)") }
            guard descriptors.count == 4, path.hasPrefix("/") else {
                throw HelperError("a program needs an absolute path and four descriptors")
            }
            try check(isFree: .networks)
            try start(path, arguments, environment, descriptors.map(\.rawValue), in: pair, side)
        case .signal(let signal):
            // Without an answer: that would come between what the program's end is told with.
            if program >= 0 { try sendToProgram(signal) }
        }
    }

    private func reply(_ reply: HelperReply) throws { try HelperPacket.send(reply, over: descriptor) }

    private func reply(with bound: (socket: SharedDescriptor, port: UInt16)) throws {
        try HelperPacket.send(
            HelperReply.socket(port: bound.port), descriptors: [bound.socket.rawValue], over: descriptor)
    }

    private func check(isFree service: HelperService) throws {
        if let reason = missing[service] { throw HelperError(reason) }
        guard fileSystem == nil, network == nil, program < 0 else {
            throw HelperError("this connection has something already")
        }
    }

    private func own<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw HelperError("this connection has none") }
        return value
    }

    // MARK: Its program

    private func start(
        _ path: String, _ arguments: [String], _ environment: [String: String], _ descriptors: [Int32],
        in pair: NetworkPair, _ side: NetworkSide
    ) throws {
        let user = "\(place.user)"
        // It becomes the user before it is the program, and ends with us.
        let drop = ["--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--pdeathsig", "KILL", "--"]
        let words = try pair.asking([try Command.find("setpriv")] + drop + [path] + arguments, on: side)
        let start = ProgramStart(
            path: words[0], arguments: Array(words.dropFirst()), environment: environment,
            descriptors: Array(descriptors[0..<3]), directory: descriptors[3])
        let child = try pair.inside(side) { try ChildProcess(start) }
        program = child.handle.rawValue
        let process = child.process
        self.child = consume child
        try reply(.started(process: process))
    }

    private func sendToProgram(_ signal: Int32) throws {
        switch child {
        case .some(let child): try child.send(signal: signal)
        case nil: return
        }
    }

    /// Tells how the program ended.
    func programEnded() {
        guard let child = child.take() else { return }
        program = -1
        let reply =
            switch child.wait() {
            case .exited(let status): HelperReply.exited(status: status)
            case .killed(let signal): HelperReply.killed(signal: signal)
            }
        // Whoever does not want to know has gone: the next look at the socket shows that.
        try? self.reply(reply)
    }

    /// Removes what the connection has.
    func close() {
        if let child = child.take() {
            child.sendToGroup(signal: SIGKILL)
            _ = child.wait()
        }
        program = -1
        fileSystem?.remove()
        fileSystem = nil
        network?.remove()
        network = nil
        isClosed = true
    }
}
