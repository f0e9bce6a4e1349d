// The command `backgroundassets`; everything it does is in AssetsCommands.
internal import AssetsCommands
internal import Glibc

let status = AssetsTool.run(Array(CommandLine.arguments.dropFirst()))
fflush(nil)
// Threads of a server may be about to end, and libraries that are taken apart by exit() would be gone under them.
_exit(status)
