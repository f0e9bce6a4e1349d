// `swift package docs`: a DocC archive for every target with a catalog. Warnings, so every broken link, fail.
import Foundation
import PackagePlugin

@main
struct BuildDocs: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) async throws {
        let docc = try context.tool(named: "docc")
        let targets = context.package.targets(ofType: SwiftSourceModuleTarget.self)
            .filter { $0.kind == .generic && (arguments.isEmpty || arguments.contains($0.name)) }
        for name in arguments where !targets.contains(where: { $0.name == name }) {
            throw Failure(description: "there is no library target '\(name)'")
        }
        var failed: [String] = []
        for target in targets {
            guard let catalog = catalog(of: target) else { continue }
            let graph = try packageManager.getSymbolGraph(
                for: target, options: .init(minimumAccessLevel: .public, includeSynthesized: false, includeSPI: false))
            let output = context.pluginWorkDirectoryURL.appending(path: "\(target.name).doccarchive")
            let status = try convert(catalog, graph.directoryURL, of: target.name, with: docc.url, to: output)
            if status == 0 {
                print("\(target.name): \(output.path)")
            } else {
                failed.append(target.name)
            }
        }
        if !failed.isEmpty { throw Failure(description: "no documentation for \(failed.joined(separator: ", "))") }
    }

    private func catalog(of target: SwiftSourceModuleTarget) -> URL? {
        let catalog = target.directoryURL.appending(path: "\(target.name).docc")
        return FileManager.default.fileExists(atPath: catalog.path) ? catalog : nil
    }

    private func convert(
        _ catalog: URL, _ graphs: URL, of name: String, with docc: URL, to output: URL
    ) throws -> Int32 {
        let process = Process()
        process.executableURL = docc
        process.arguments = [
            "convert", catalog.path, "--additional-symbol-graph-dir", graphs.path, "--output-path", output.path,
            "--fallback-display-name", name, "--fallback-bundle-identifier", name, "--warnings-as-errors",
        ]
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}
