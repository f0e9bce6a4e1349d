// `swift package bundle`: an app bundle from an app product, an extension product, property lists and entitlements.
import Foundation
import PackagePlugin

@main
struct BundleApp: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) async throws {
        guard let options = try BundleOptions(arguments) else {
            print(BundleOptions.help)
            return
        }
        let app = try part(.app, options, of: context)
        let downloader = try options.extensionProduct.map { _ in try part(.appExtension, options, of: context) }
        try Self.checkTogether(app, downloader)
        let output = options.output.map(Self.absolute) ?? context.pluginWorkDirectoryURL
        var strip: URL?
        if options.strips { strip = try context.tool(named: "llvm-objcopy").url }
        let assembler = try BundleAssembler(
            app: app, downloader: downloader, output: output, includesRuntime: options.includesRuntime, strip: strip,
            resources: options.resources.map(Self.absolute))
        let bundle = try assembler.assemble()
        print(bundle.path)
        if let format = options.archive { print(try format.pack(bundle).path) }
        if !assembler.systemLibraries.isEmpty {
            print("needs from the system: \(assembler.systemLibraries.joined(separator: " "))")
        }
    }

    /// Reads the property lists of app or extension, which may be wrong, and then builds its product, which takes time.
    private func part(_ kind: BundlePart.Kind, _ options: BundleOptions, of context: PluginContext) throws -> BundlePart
    {
        let name = kind == .app ? options.appProduct : options.extensionProduct ?? ""
        guard let product = context.package.products(ofType: ExecutableProduct.self).first(where: { $0.name == name })
        else {
            let known = context.package.products(ofType: ExecutableProduct.self).map(\.name).joined(separator: ", ")
            throw BundleError(
                "there is no executable product '\(name)'", "name one of this package with \(kind.option): \(known)")
        }
        let folder = product.mainTarget.directoryURL
        let info = kind == .app ? options.appInfo : options.extensionInfo
        let entitlements = kind == .app ? options.appEntitlements : options.extensionEntitlements
        var part = try BundlePart(
            kind: kind, product: name,
            info: info.map(Self.absolute) ?? folder.appending(path: "Info.plist"),
            entitlements: entitlements.map(Self.absolute) ?? folder.appending(path: "Entitlements.plist"),
            values: kind == .app ? options.infoValues : [])
        part.built = try build(name, options)
        part.targets = product.targets.flatMap { [$0] + $0.recursiveTargetDependencies }.map(\.name)
        return part
    }

    private func build(_ product: String, _ options: BundleOptions) throws -> URL {
        var parameters = PackageManager.BuildParameters(
            configuration: options.isRelease ? .release : .debug, echoLogs: true)
        // Room for the paths that are written into the copies; they also serve where the runtime is left out.
        parameters.otherLinkerFlags = ["-rpath=\(BundlePart.Kind.appExtension.libraryPath)"]
        let result = try packageManager.build(.product(product), parameters: parameters)
        guard result.succeeded else {
            throw BundleError("'\(product)' does not build", "mend what the compiler says above")
        }
        guard
            let built = result.builtArtifacts.first(where: {
                $0.kind == .executable && $0.url.lastPathComponent == product
            })
        else { throw BundleError("the build made no executable '\(product)'", "check the product in Package.swift") }
        return built.url
    }

    /// What app and extension have to agree on, said before a device refuses it.
    private static func checkTogether(_ app: BundlePart, _ downloader: BundlePart?) throws {
        guard let downloader else { return }
        guard downloader.identifier.hasPrefix(app.identifier + ".") else {
            throw BundleError(
                "the extension's CFBundleIdentifier \(downloader.identifier) does not begin with the app's "
                    + app.identifier, "begin it with \(app.identifier).")
        }
        guard !Set(app.groups).isDisjoint(with: downloader.groups) else {
            throw BundleError(
                "app and extension have no app group in common",
                "name the same group under \(BundlePart.groupsKey) in both entitlements")
        }
    }

    private static func absolute(_ path: String) -> URL { URL(filePath: path).absoluteURL.standardizedFileURL }
}

/// What went wrong, and what to do about it.
struct BundleError: Error, CustomStringConvertible {
    let description: String

    init(_ problem: String, _ remedy: String) { description = "\(problem); \(remedy)" }
}
