// The app: shows the sessions and fetches what is missing.
import BackgroundAssets
import Dispatch
import SessionsCore

@main
struct SessionsApp {
    static func main() async {
        let options: AppOptions
        switch AppOptions.read(Array(CommandLine.arguments.dropFirst())) {
        case .success(let read): options = read
        case .failure(let error):
            Terminal.say("Sessions: \(error.sentence)")
            exit(64)
        }
        if options.showsHelp {
            print(AppOptions.help)
            exit(0)
        }
        do {
            let status = try await run(options)
            fflush(nil)
            exit(status)
        } catch {
            Terminal.say("Sessions: \(error.sentence)")
            exit(1)
        }
    }

    private static func run(_ options: AppOptions) async throws -> Int32 {
        guard let library = SessionLibrary() else {
            throw AppError("not entitled to the group \(SessionLibrary.groupIdentifier); start the installed app")
        }
        let manifest = try await ManifestSource(library: library).manifest()
        if let identifier = options.sessionToPlay { return try Player(library, manifest).play(identifier) }
        let manager = SessionManager(library: library, manifest: manifest)
        try await manager.startDownloads()
        let isLive = Terminal.isInteractive && !options.printsJSON
        // Like a window, the list on a terminal stays until its user leaves.
        guard isLive || options.waits else {
            try show(manager.overview(), options)
            return 0
        }
        let status = try await SessionScreen(manager, isLive: isLive, isQuiet: options.printsJSON, waits: options.waits)
            .run()
        if !isLive { try show(manager.overview(), options) }
        return status
    }

    private static func show(_ rows: [SessionRow], _ options: AppOptions) throws {
        if options.printsJSON {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            print(String(decoding: try encoder.encode(rows), as: UTF8.self))
        } else {
            for row in rows { print(row.line(width: nil, isColored: false)) }
        }
    }
}

/// What went wrong.
struct AppError: LocalizedError {
    let failureReason: String?

    init(_ reason: String) { failureReason = reason }
}

/// The command line.
struct AppOptions {
    var waits = false
    var printsJSON = false
    var showsHelp = false
    var sessionToPlay: String?

    static func read(_ arguments: [String]) -> Result<AppOptions, AppError> {
        var options = AppOptions()
        var words = arguments[...]
        while let word = words.popFirst() {
            switch word {
            case "--wait": options.waits = true
            case "--json": options.printsJSON = true
            case "--help", "-h": options.showsHelp = true
            case "--play":
                guard let identifier = words.popFirst() else {
                    return .failure(AppError("--play needs the id of a session; '--json' lists them"))
                }
                options.sessionToPlay = identifier
            default: return .failure(AppError("'\(word)' is not understood; see 'Sessions --help'"))
            }
        }
        return .success(options)
    }

    static let help = """
        Usage: Sessions [--wait] [--json] [--play <id>]

        Shows the sessions, and fetches those that are not on this machine. On a terminal the list stays until Ctrl-C;
        elsewhere it is printed once. What is not here by then goes on arriving in the background.

          --wait        End when all sessions are here; fail when one cannot be fetched.
          --json        Print the list as JSON.
          --play <id>   Open a session in the desktop's player.
          --help        Show this.
        """
}
