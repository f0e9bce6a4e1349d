// The command `backgroundassets-debug`; everything it does is in AssetsCommands.
internal import AssetsCommands
internal import Glibc

exit(DebugTool.run(Array(CommandLine.arguments.dropFirst())))
