// The command `backgroundassets`; everything it does is in AssetsCommands.
internal import AssetsCommands
internal import Glibc

exit(AssetsTool.run(Array(CommandLine.arguments.dropFirst())))
