// What the app shows while sessions arrive.
import BackgroundAssets
import Dispatch
import SessionsCore

/// A list that is drawn anew on a terminal, or a line for every step elsewhere. Ends when its work is done or on Ctrl-C.
struct SessionScreen {
    /// Between two looks at the files: the system may have taken one away.
    private static let lookAgainAfter = Duration.seconds(1)
    /// A terminal need not be drawn more often than people see.
    private static let drawAgainAfter = Duration.milliseconds(100)
    /// What shells report of a program ended by Ctrl-C.
    private static let interrupted: Int32 = 130

    private let manager: SessionManager
    private let isLive: Bool
    private let isQuiet: Bool
    private let waits: Bool

    init(_ manager: SessionManager, isLive: Bool, isQuiet: Bool, waits: Bool) {
        self.manager = manager
        self.isLive = isLive
        self.isQuiet = isQuiet
        self.waits = waits
    }

    /// Returns the exit status.
    func run() async throws -> Int32 {
        try await withThrowingTaskGroup(of: Int32.self) { group in
            group.addTask { try await draw() }
            group.addTask { await interruption() }
            group.addTask {
                while true {
                    try await Task.sleep(for: Self.lookAgainAfter)
                    try await manager.refresh()
                }
            }
            // The first that ends decides.
            let status = try await group.next() ?? 1
            group.cancelAll()
            return status
        }
    }

    private func draw() async throws -> Int32 {
        var screen = Terminal.Area()
        var told: [String: String] = [:]
        for await _ in manager.changes {
            let rows = manager.overview()
            if isLive {
                let size = Terminal.size
                screen.draw(rows.map { $0.line(width: size.columns, isColored: true) }, height: size.rows)
            } else if !isQuiet {
                tell(rows, &told)
            }
            if waits, let status = Self.end(rows) {
                for row in rows where row.state == .failed {
                    Terminal.say("\(row.id) cannot be fetched: \(row.reason ?? "")")
                }
                return status
            }
            if isLive { try await Task.sleep(for: Self.drawAgainAfter) }
        }
        return Self.interrupted
    }

    /// One line when a session's download begins, and one when it ends.
    private func tell(_ rows: [SessionRow], _ told: inout [String: String]) {
        for row in rows {
            let line =
                switch row.state {
                case .local: "\(row.title) is here"
                case .downloading: "\(row.title) is arriving"
                case .failed: "\(row.title) failed: \(row.reason ?? "")"
                case .waiting: ""
                }
            // A list of what is here already would be no news.
            if !line.isEmpty, told[row.id] != line, !(row.state == .local && told[row.id] == nil) {
                Terminal.say(line)
            }
            told[row.id] = line
        }
    }

    /// 0 when all are here, 1 when all that can be are, nil before.
    private static func end(_ rows: [SessionRow]) -> Int32? {
        if rows.allSatisfy({ $0.state == .local }) { return 0 }
        return rows.allSatisfy { $0.state == .local || $0.state == .failed } ? 1 : nil
    }

    /// Returns when the user wants to leave, or when nobody waits any more.
    private func interruption() async -> Int32 {
        let (signals, arrived) = AsyncStream.makeStream(of: Int32.self)
        let sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { arrived.yield(128 + number) }
            source.resume()
            return source
        }
        defer { for source in sources { source.cancel() } }
        for await status in signals { return status }
        return Self.interrupted
    }
}
