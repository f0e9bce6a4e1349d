// The app that the benches install, and start by hand to measure what an app sees. Launched without arguments it lists
// what it downloads.
import BackgroundAssets

let arguments = Array(CommandLine.arguments.dropFirst())
let manager = BADownloadManager.shared
switch arguments.first {
case "control": try await TimedCalls(arguments).run { try await manager.withExclusiveControl {} }
case "current": try await TimedCalls(arguments).run { _ = try manager.fetchCurrentDownloads() }
case "listen": Listener.run(on: manager)
case "keep": try Keeper.run(on: manager, arguments)
default: for download in try manager.fetchCurrentDownloads() { print(download.identifier) }
}
