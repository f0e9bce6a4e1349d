internal import AssetsOS
// The command `backgroundassets`: from words to an exit status.
internal import AssetsWire
internal import CommandLineKit

/// The command line tool of the asset service.
package enum AssetsTool {
    package static let version = ProductVersion.current

    /// Does what `words` (without the tool's name) ask for and returns the exit status.
    package static func run(_ words: [String]) -> Int32 {
        do {
            switch try table.parse(words) {
            case .help(let verb): Console().data(text: table.help(for: verb))
            case .version: Console().data("\(table.name) \(version)")
            case .generate(.man): Console().data(text: table.manPage())
            case .generate(.bashCompletion): Console().data(text: table.bashCompletion())
            case .run(let verb, let values): return run(verb, values)
            }
            return ExitStatus.done
        } catch {
            Console().say("\(table.name): \(TerminalText.printable(error.description))")
            return ExitStatus.usage
        }
    }

    private static func run(_ verb: Verb, _ values: Values) -> Int32 {
        let console = Console(printsJSON: values.has("json"))
        let service = ServiceAccess(
            deviceOption: values.option("device"), environment: ProcessEnvironment.current)
        do throws(Failure) {
            return try command(verb.name)(Context(console: console, service: service, values: values))
        } catch {
            console.endProgress()
            console.say(failure: error, from: table.name)
            return error.status
        }
    }

    /// What a verb works with.
    struct Context {
        let console: Console
        let service: ServiceAccess
        let values: Values
    }

    private typealias Command = (Context) throws(Failure) -> Int32

    private static func command(_ name: String) -> Command {
        switch name {
        case "install": { (context) throws(Failure) in try InstallCommand(context).run() }
        case "launch": { (context) throws(Failure) in try launch(context) }
        case "apps": { (context) throws(Failure) in try apps(context) }
        case "downloads": { (context) throws(Failure) in try downloads(context) }
        case "journal": { (context) throws(Failure) in try journal(context) }
        case "why": { (context) throws(Failure) in try why(context) }
        case "extension": { (context) throws(Failure) in try `extension`(context) }
        case "uninstall": { (context) throws(Failure) in try uninstall(context) }
        case "doctor": { (context) throws(Failure) in try doctor(context) }
        case "settings": { (context) throws(Failure) in try settings(context) }
        case "serve": { (context) throws(Failure) in try serve(context) }
        default: preconditionFailure("the table has a verb '\(name)' that nothing carries out")
        }
    }
}
