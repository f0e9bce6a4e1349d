// Does for the tests, which run as an ordinary user, the few things that only root can: see docs/testing.md.
//
//     RootHelper serve --user N --folder FOLDER -- COMMAND...   runs a command that finds this helper
//     RootHelper enter NETWORK device|world COMMAND...          runs a command on one side of a network of the helper
internal import Glibc

let words = Array(CommandLine.arguments.dropFirst())
let usage = "usage: RootHelper serve --user N --folder FOLDER -- COMMAND... | enter NETWORK device|world COMMAND...\n"
do {
    switch words.first {
    case "serve": exit(try HelperServer.run(Array(words.dropFirst())))
    case "enter": exit(try EnterCommand.run(Array(words.dropFirst())))
    default:
        _ = write(STDERR_FILENO, usage, usage.utf8.count)
        exit(64)
    }
} catch {
    let line = "RootHelper: \(error)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
    exit(70)
}
