// The program that stands for another one which runs on a side of a network.
internal import AssetsOS
internal import Glibc
internal import RootHelperClient

/// Asks the helper to run a command, passes signals on to it, and ends as it ends. Runs as the tests' user.
enum EnterCommand {
    private static let passed = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT]

    static func run(_ words: [String]) throws -> Int32 {
        guard words.count >= 3, let network = Int(words[0]), let side = NetworkSide(rawValue: words[1]) else {
            throw HelperError("what is entered is a network's number and 'device' or 'world'")
        }
        let signals = try TakenSignals(passed)
        let connection = try HelperConnection()
        let folder = try Descriptor.directory(".")
        let request = HelperRequest.run(
            network: network, side, path: words[2], arguments: Array(words.dropFirst(3)),
            environment: ProcessEnvironment.current)
        try connection.send(
            request, descriptors: [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, folder.rawValue])
        while true {
            var watched = [connection.descriptor, signals.descriptor].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            try check("poll") { poll(&watched, 2, -1) }
            for signal in signals.take() { try connection.send(.signal(signal)) }
            guard watched[0].revents != 0 else { continue }
            let reply = try connection.receive().reply
            switch reply {
            case .started: leaveDescriptors()
            case .exited(let status): return status
            case .killed(let signal): die(of: signal)
            case .described, .done, .fileSystem, .network, .socket, .failed:
                throw HelperConnection.unexpected(reply)
            }
        }
    }

    /// They are the program's now: who waits for the end of its output must not wait for us.
    private static func leaveDescriptors() {
        close(STDIN_FILENO)
        close(STDOUT_FILENO)
    }

    private static func die(of number: Int32) -> Never {
        var set = TakenSignals.set([number])
        sigprocmask(SIG_UNBLOCK, &set, nil)
        // A sanitizer takes some.
        signal(number, SIG_DFL)
        kill(getpid(), number)
        // Not every signal ends a process.
        exit(128 + number)
    }
}
