// The command line of `swift package bundle`.

/// What to bundle.
struct BundleOptions {
    var appProduct = ""
    var appInfo: String?
    var appEntitlements: String?
    var extensionProduct: String?
    var extensionInfo: String?
    var extensionEntitlements: String?
    /// Keys of the app's Info.plist with the texts that replace what the file says.
    var infoValues: [(key: String, value: String)] = []
    var resources: [String] = []
    var output: String?
    var isRelease = true
    var archive: ArchiveFormat?
    var includesRuntime = true
    private var stripChoice: Bool?

    /// Symbols for a debugger help where the app is developed and only cost time where it is downloaded.
    var strips: Bool { stripChoice ?? isRelease }

    /// Nil when help was asked for.
    init?(_ arguments: [String]) throws {
        var words = arguments[...]
        while let word = words.popFirst() {
            switch word {
            case "--help", "-h": return nil
            case "--no-runtime": includesRuntime = false
            case "--strip": stripChoice = true
            case "--no-strip": stripChoice = false
            default:
                guard word.hasPrefix("--") else {
                    throw BundleError("'\(word)' is no option", "see 'swift package bundle --help'")
                }
                let parts = word.split(separator: "=", maxSplits: 1)
                let name = String(parts[0])
                guard Self.valued.contains(name) else {
                    throw BundleError("there is no option '\(name)'", "see 'swift package bundle --help'")
                }
                guard let value = parts.count == 2 ? String(parts[1]) : words.popFirst(), !value.isEmpty else {
                    throw BundleError("\(name) has no value", "write it after the option")
                }
                try take(name, value)
            }
        }
        guard !appProduct.isEmpty else {
            throw BundleError("there is no app to bundle", "name its executable product with --app")
        }
        if extensionProduct == nil, extensionInfo != nil || extensionEntitlements != nil {
            throw BundleError(
                "files of an extension are given, but none to bundle", "name its product with --extension")
        }
    }

    private static let valued = [
        "--app", "--app-info", "--app-entitlements", "--extension", "--extension-info", "--extension-entitlements",
        "--info-value", "--resource", "--output", "--configuration", "--archive",
    ]

    private mutating func take(_ name: String, _ value: String) throws {
        switch name {
        case "--app": appProduct = value
        case "--app-info": appInfo = value
        case "--app-entitlements": appEntitlements = value
        case "--extension": extensionProduct = value
        case "--extension-info": extensionInfo = value
        case "--extension-entitlements": extensionEntitlements = value
        case "--resource": resources.append(value)
        case "--output": output = value
        case "--info-value":
            let parts = value.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, !value.hasPrefix("=") else {
                throw BundleError("--info-value \(value) has no key or no value", "write it as KEY=VALUE")
            }
            infoValues.append((String(parts[0]), String(parts[1])))
        case "--configuration":
            guard ["release", "debug"].contains(value) else {
                throw BundleError("there is no configuration '\(value)'", "write --configuration release or debug")
            }
            isRelease = value == "release"
        default:
            guard let format = ArchiveFormat(rawValue: value) else {
                throw BundleError("'\(value)' is no archive format", "write --archive zip or --archive tar.zst")
            }
            archive = format
        }
    }

    static let help = """
        Usage: swift package bundle --app <product> [--extension <product>] [options]

        Builds an app and its extension for downloads and puts them, with all libraries they need, into an app bundle
        that 'backgroundassets install' takes. Prints the path of the bundle and of the archive.

          --app <product>                   The app's executable product; gives the bundle its name.
          --app-info <file>                 Its Info.plist.
          --app-entitlements <file>         Its Entitlements.plist, as Xcode writes .entitlements files.
          --extension <product>             The extension's executable product.
          --extension-info <file>           Its Info.plist.
          --extension-entitlements <file>   Its Entitlements.plist.
                                            Files not named are looked for in the folder of the product's sources.
          --info-value <key>=<text>         Writes a text into the app's Info.plist, such as another BAManifestURL.
          --resource <path>                 Copies a file or folder into the app's folder. Resources that the targets
                                            declare in Package.swift are there anyway.
          --output <folder>                 Where the bundle goes; without it, the plugin's folder below .build.
          --configuration release|debug     How to build; release unless said.
          --archive zip|tar.zst             Also packs the bundle beside itself.
          --no-runtime                      Leaves the Swift runtime out; it is then looked for where it was built.
          --strip, --no-strip               Whether to drop debug information; release does unless told otherwise.
          --help                            Shows this.
        """
}
