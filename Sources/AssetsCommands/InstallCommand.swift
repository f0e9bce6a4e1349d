// `install`: one progress bar over the whole installation, which outlives the service and ends on Ctrl-C.
internal import AssetsClient
internal import AssetsModel
internal import AssetsOS
internal import AssetsWire
internal import CommandLineKit
internal import Glibc

/// One installation, from the command line's point of view.
struct InstallCommand {
    private typealias Update = DeviceInterface.InstallUpdate

    /// Lost connections in a row, without an update between them, before the command gives up.
    private static let reconnectsMax = 5
    /// Between a lost connection and the next try.
    private static let reconnectPause = Duration.milliseconds(300)

    private let console: Console
    private let service: ServiceAccess
    private let values: Values
    private let cancellation: InstallCancellation
    private let start = MonotonicClock.now

    init(_ context: AssetsTool.Context) {
        console = context.console
        service = context.service
        values = context.values
        cancellation = InstallCancellation(service: context.service, console: context.console)
    }

    func run() throws(Failure) -> Int32 {
        let source = try Self.absolute(values.argument("source") ?? "")
        Interrupts.block()
        Interrupts.observe { [cancellation] count in cancellation.interrupt(count) }
        let last = try follow(source: source)
        console.endProgress()
        return try end(with: last)
    }

    // MARK: Following

    /// Starts the installation and follows it to its last update, over as many connections as it takes.
    private func follow(source: String) throws(Failure) -> Update {
        let kind = values.has("sideload") ? "sideload" : "store"
        var last: Update?
        var losses = 0
        while true {
            do {
                let connection = try service.connect()
                defer { connection.close() }
                let each = { (update: Update) -> Bool in
                    losses = 0
                    last = update
                    show(update)
                    return !update.isFinal
                }
                if let install = last?.install {
                    try connection.stream(DeviceInterface.FollowInstall.self, .init(install: install)) {
                        each($0.update)
                    }
                } else {
                    try connection.stream(
                        DeviceInterface.Install.self, .init(source: source, sourceKind: kind)
                    ) { each($0.update) }
                }
                if let last, last.isFinal { return last }
                throw Failure("the service stopped telling of the installation", status: ExitStatus.noService)
            } catch {
                let failure = error as? Failure ?? Failure(error)
                losses += 1
                try reconnect(after: failure, losses: losses, known: last != nil)
            }
        }
    }

    /// Returns when it is worth asking the service again.
    private func reconnect(after failure: Failure, losses: Int, known: Bool) throws(Failure) {
        guard failure.status == ExitStatus.noService else { throw failure }
        guard known, losses <= Self.reconnectsMax else {
            throw known
                ? Failure(
                    "the service cannot be reached any more: \(failure.reason)",
                    remedy: "the installation goes on when it runs again; see 'backgroundassets apps'",
                    status: failure.status)
                : failure
        }
        console.say("the service has gone; asking again (\(losses) of \(Self.reconnectsMax))")
        var pause = timespec(tv_sec: 0, tv_nsec: Int(Self.reconnectPause.components.attoseconds / 1_000_000_000))
        _ = nanosleep(&pause, nil)
    }

    private func show(_ update: Update) {
        cancellation.learn(update.install)
        if console.printsJSON {
            console.data(json: update)
        } else if !update.isFinal {
            console.show(
                Progress(
                    phase: Self.words(for: update.phase), fraction: update.fraction, received: update.received,
                    expected: update.expected, note: update.detail))
        }
    }

    private static func words(for phase: String) -> String {
        switch phase {
        case "archive": "fetching the app"
        case "unpacking": "unpacking"
        case "manifest": "manifest"
        case "asking": "asking the extension"
        case "essential": "essential assets"
        // A newer service may know more of them.
        default: phase
        }
    }

    // MARK: The end

    private func end(with update: Update) throws(Failure) -> Int32 {
        switch update.phase {
        case "launchable":
            if console.printsJSON { return ExitStatus.done }
            let time = Format.duration(MonotonicClock.now - start)
            console.data("\(name(of: update.app)) is ready to launch (\(time), \(Format.bytes(update.received)))")
            return ExitStatus.done
        case "cancelled" where cancellation.wasAsked:
            console.say("cancelled; nothing is left of the installation")
            return ExitStatus.interrupted
        case "cancelled":
            let code = AssetsError.Code.cancelled.rawValue
            throw Failure(
                code: code, update.detail.isEmpty ? "the installation was cancelled" : update.detail,
                remedy: update.remedy, status: ErrorTable.status(for: code))
        default:
            let code = Int(clamping: update.code)
            throw Failure(code: code, update.detail, remedy: update.remedy, status: ErrorTable.status(for: code))
        }
    }

    /// Name and version as people know them; the bundle id when the service cannot tell any more.
    private func name(of app: String) -> String {
        var found: DeviceInterface.App?
        try? service.stream(DeviceInterface.Apps.self, .init()) { page in
            found = found ?? page.apps.first { $0.bundleIdentifier == app }
        }
        return TerminalText.printable(found.map { "\($0.name) \($0.version)" } ?? app)
    }

    /// The service has another working directory: paths travel absolute. URLs stay as they are.
    private static func absolute(_ source: String) throws(Failure) -> String {
        if source.contains("://") { return source }
        guard let path = realpath(source, nil) else {
            let code = AssetsError.Code.sourceUnreachable.rawValue
            throw Failure(
                code: code, "cannot read '\(source)': \(String(cString: strerror(errno)))",
                remedy: "give a bundle's folder, an archive or an https URL", status: ErrorTable.status(for: code))
        }
        defer { free(path) }
        return String(cString: path)
    }
}

extension DeviceInterface.InstallUpdate {
    fileprivate var isFinal: Bool { ["launchable", "failed", "cancelled"].contains(phase) }
}

/// Ctrl-C during an installation. Known to two threads: the one that follows and the one that takes signals.
private final class InstallCancellation: Sendable {
    private struct State {
        var install: String?
        var isAsked = false
        var isSent = false

        /// The installation to cancel now, once.
        mutating func take() -> String? {
            guard isAsked, !isSent, let install else { return nil }
            isSent = true
            return install
        }
    }

    private let state = Guarded(State())
    private let service: ServiceAccess
    private let console: Console

    init(service: ServiceAccess, console: Console) {
        self.service = service
        self.console = console
    }

    var wasAsked: Bool { state.withLock { $0.isAsked } }

    /// The installation's name has become known, from then on it can be cancelled.
    func learn(_ install: String) {
        let cancelled = state.withLock { state in
            state.install = install
            return state.take()
        }
        if let cancelled { cancel(cancelled) }
    }

    func interrupt(_ count: Int) {
        guard count == 1 else {
            // Asked twice: leave at once, whatever the service does.
            console.say("not waiting for the service; 'backgroundassets apps' shows what became of the installation")
            exit(ExitStatus.interrupted)
        }
        console.say("cancelling; once more Ctrl-C to leave at once")
        let cancelled = state.withLock { state in
            state.isAsked = true
            return state.take()
        }
        if let cancelled { cancel(cancelled) }
    }

    /// The open stream then ends with the update "cancelled". A service that has just gone is asked by the next update.
    private func cancel(_ install: String) {
        do {
            _ = try service.call(DeviceInterface.CancelInstall.self, .init(install: install))
        } catch {
            state.withLock { $0.isSent = false }
            if error.status != ExitStatus.noService {
                console.say("could not cancel: \(TerminalText.printable(error.description))")
            }
        }
    }
}
