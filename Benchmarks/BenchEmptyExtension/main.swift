// The extension that is woken in the bench `wake`: it does nothing, so that nothing but the waking is measured.
import BackgroundAssets
import Foundation
import FoundationNetworking
import Glibc

struct EmptyExtension: BADownloaderExtension {
    /// A file of that name in the extension's home asks for the memory that was in use before this.
    private static let question = "/measure"

    init() {
        guard let home = getenv("HOME"), access(String(cString: home) + Self.question, F_OK) == 0 else { return }
        let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        print(lines.split(separator: "\n").first { $0.hasPrefix("RssAnon:") } ?? "RssAnon: unknown")
    }

    func downloads(
        for request: BAContentRequest, manifestURL: URL, extensionInfo: BAAppExtensionInfo
    ) -> Set<BADownload> { [] }
}

// The same program as it is without a service: a byte says that it has come to its first line.
if CommandLine.arguments.dropFirst().first == "--main" {
    var byte: UInt8 = 1
    _ = write(STDOUT_FILENO, &byte, 1)
    _exit(0)
}
try EmptyExtension.main()
