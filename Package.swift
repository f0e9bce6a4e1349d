// swift-tools-version: 6.2
// Background Assets for Linux. The layers are explained in docs/design.md; imports point down.
import Foundation
import PackageDescription

/// What every Swift target is compiled with.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

/// Targets without I/O also do without unsafe memory.
let pure: [SwiftSetting] = strict + [.strictMemorySafety()]

/// scripts/run-tests says so when it builds with a sanitizer.
let isSanitized = Context.environment["BACKGROUNDASSETS_SANITIZED"] != nil

/// Our executables carry the Swift runtime and FoundationEssentials in themselves: they start faster, stay smaller in
/// memory and need no toolchain where they are installed. Not with a sanitizer: linking so hides its `malloc` from the
/// libraries of the system, whose memory it would then take for foreign when we free it.
let selfContained: [LinkerSetting] =
    isSanitized
    ? []
    : [
        .unsafeFlags([
            "-static-stdlib", "-Xlinker", "-l_FoundationCShims", "-Xlinker", "-l_FoundationCollections",
            "-Xlinker", "-lswiftSynchronization", "-Xlinker", "--gc-sections",
        ])
    ]

/// The launcher of extensions has nothing to load: it starts in a third of the time.
let wholeProgram: [LinkerSetting] =
    isSanitized ? [] : [.unsafeFlags(["-static-executable", "-Xlinker", "--gc-sections", "-Xlinker", "-s"])]

/// A target appears once its folder exists.
func present(_ target: Target, _ folder: String) -> Bool {
    FileManager.default.fileExists(atPath: Context.packageDirectory + "/" + (target.path ?? folder + "/" + target.name))
}

let libraries: [Target] = [
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
    .systemLibrary(name: "COpenSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSeccomp", pkgConfig: "libseccomp", providers: [.apt(["libseccomp-dev"])]),
    .target(name: "CLinux"),

    // Rules and messages: no I/O.
    .target(name: "AssetsModel", dependencies: ["COpenSSL"], swiftSettings: pure),
    .target(name: "AssetsWire", swiftSettings: strict),
    .target(name: "AssetsSandbox", swiftSettings: pure),

    // Ground.
    .target(name: "AssetsOS", dependencies: ["CLinux"], swiftSettings: strict),
    .target(name: "AssetsClient", dependencies: ["AssetsWire", "AssetsOS"], swiftSettings: strict),

    // Parts.
    .target(name: "AssetsStore", dependencies: ["AssetsModel", "AssetsOS", "CSQLite"], swiftSettings: strict),
    .target(
        name: "AssetsTransfer", dependencies: ["AssetsModel", "AssetsOS", "CCurl", "COpenSSL"], swiftSettings: strict),
    .target(
        name: "AssetsExtensionHost", dependencies: ["AssetsModel", "AssetsSandbox", "AssetsOS", "CLinux", "CSeccomp"],
        swiftSettings: strict),
    .target(name: "AssetsInstaller", dependencies: ["AssetsModel", "AssetsOS", "CArchive"], swiftSettings: strict),
    .target(name: "DevelopmentServer", dependencies: ["AssetsOS", "COpenSSL"], swiftSettings: strict),

    // Service.
    .target(
        name: "AssetsService",
        dependencies: [
            "AssetsModel", "AssetsSandbox", "AssetsWire", "AssetsOS", "AssetsStore", "AssetsTransfer",
            "AssetsExtensionHost", "AssetsInstaller",
        ],
        swiftSettings: strict),
    .target(
        name: "BackgroundAssetsTesting",
        dependencies: [
            "AssetsModel", "AssetsOS", "AssetsStore", "AssetsTransfer", "AssetsService", "CSQLite", "DevelopmentServer",
        ],
        swiftSettings: strict),

    // Surface.
    .target(name: "ExtensionFoundation", dependencies: ["CLinux"], swiftSettings: strict),
    // Its module map says `module os`: the Swift module of that name lies on top of it.
    .systemLibrary(name: "COSLog"),
    .target(name: "os", dependencies: ["COSLog"], swiftSettings: strict),
    .target(name: "OSLog", dependencies: ["os"], swiftSettings: strict),
    // The repair library, and the side of it that lies in BackgroundAssets.
    .target(
        name: "FoundationRepair",
        // It is loaded into programs of all kinds, so nothing of Swift may be linked to it.
        linkerSettings: [.unsafeFlags(["-static-stdlib", "-nostartfiles"])]),
    .target(name: "CRepair"),
    .target(
        name: "BackgroundAssets",
        dependencies: ["AssetsWire", "AssetsOS", "AssetsClient", "CRepair", "ExtensionFoundation"],
        swiftSettings: strict),
    .target(name: "CommandLineKit", dependencies: ["AssetsOS"], swiftSettings: strict),
    .target(
        name: "AssetsCommands",
        dependencies: ["CommandLineKit", "AssetsModel", "AssetsWire", "AssetsOS", "AssetsClient", "DevelopmentServer"],
        swiftSettings: strict),

    .executableTarget(
        name: "backgroundassetsd", dependencies: ["AssetsService"], swiftSettings: strict,
        linkerSettings: selfContained),
    .executableTarget(
        name: "backgroundassets", dependencies: ["AssetsCommands"], swiftSettings: strict,
        linkerSettings: selfContained),
    .executableTarget(
        name: "backgroundassets-debug", dependencies: ["AssetsCommands"], swiftSettings: strict,
        linkerSettings: selfContained),
    .executableTarget(
        name: "extension-launcher", dependencies: ["AssetsSandbox", "CLinux"], swiftSettings: strict,
        linkerSettings: wholeProgram),
    // Benchmarks: the harness, the benches, and the app they install.
    .target(
        name: "BenchmarkKit", dependencies: ["AssetsOS", "CommandLineKit"], path: "Benchmarks/BenchmarkKit",
        swiftSettings: strict),
    .executableTarget(
        name: "AssetsBenchmarks",
        dependencies: [
            "BenchmarkKit", "AssetsClient", "AssetsExtensionHost", "AssetsModel", "AssetsOS", "AssetsSandbox",
            "AssetsService", "AssetsTransfer", "AssetsWire", "CommandLineKit", "CSQLite", "DevelopmentServer",
            "PowerCut",
            "RootHelperClient",
        ],
        path: "Benchmarks/AssetsBenchmarks", swiftSettings: strict, linkerSettings: selfContained),
    .executableTarget(
        name: "BenchApp", dependencies: ["BackgroundAssets", "AssetsOS"], path: "Benchmarks/BenchApp",
        swiftSettings: strict, linkerSettings: [.unsafeFlags(["-Xlinker", "-s"])]),
    .executableTarget(
        name: "BenchExtension", dependencies: ["BackgroundAssets"], path: "Benchmarks/BenchExtension",
        swiftSettings: strict, linkerSettings: [.unsafeFlags(["-Xlinker", "-s"])]),

    .executableTarget(
        name: "BenchEmptyExtension", dependencies: ["BackgroundAssets"], path: "Benchmarks/BenchEmptyExtension",
        swiftSettings: strict, linkerSettings: [.unsafeFlags(["-Xlinker", "-s"])]),

    .plugin(
        name: "BundleApp",
        capability: .command(
            intent: .custom(
                verb: "bundle", description: "Builds an app bundle from products, property lists and entitlements."))),
    .plugin(
        name: "BuildDocs",
        capability: .command(intent: .custom(verb: "docs", description: "Builds the DocC archives."))),
]

let tests: [Target] = [
    .testTarget(name: "AssetsModelTests", dependencies: ["AssetsModel"], swiftSettings: strict),
    .testTarget(name: "AssetsWireTests", dependencies: ["AssetsWire"], swiftSettings: strict),
    .testTarget(name: "AssetsOSTests", dependencies: ["AssetsOS"], swiftSettings: strict),
    .testTarget(
        name: "AssetsClientTests", dependencies: ["AssetsClient", "AssetsWire", "AssetsOS"], swiftSettings: strict),
    .testTarget(
        name: "AssetsStoreTests", dependencies: ["AssetsStore", "AssetsModel", "AssetsOS"], swiftSettings: strict),
    .testTarget(
        name: "AssetsTransferTests", dependencies: ["AssetsTransfer", "AssetsModel", "AssetsOS", "CCurl", "CLinux"],
        swiftSettings: strict),
    .testTarget(name: "AssetsSandboxTests", dependencies: ["AssetsSandbox"], swiftSettings: strict),
    .testTarget(
        name: "AssetsExtensionHostTests", dependencies: ["AssetsExtensionHost", "AssetsSandbox", "AssetsOS"],
        swiftSettings: strict),
    .testTarget(
        name: "AssetsInstallerTests", dependencies: ["AssetsInstaller", "AssetsModel", "AssetsOS"],
        swiftSettings: strict),
    .testTarget(
        name: "DevelopmentServerTests", dependencies: ["DevelopmentServer", "AssetsOS"], swiftSettings: strict),
    .testTarget(
        name: "AssetsServiceTests",
        dependencies: [
            "AssetsService", "AssetsStore", "BackgroundAssetsTesting", "AssetsModel", "AssetsOS", "AssetsWire",
            "DevelopmentServer",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "BackgroundAssetsTestingTests",
        dependencies: ["BackgroundAssetsTesting", "AssetsModel", "AssetsOS", "AssetsStore", "CSQLite"],
        swiftSettings: strict),
    .testTarget(name: "BenchmarkKitTests", dependencies: ["BenchmarkKit"], swiftSettings: strict),
    .testTarget(name: "CommandLineKitTests", dependencies: ["CommandLineKit"], swiftSettings: strict),
    .testTarget(name: "OSLogTests", dependencies: ["os", "OSLog"], swiftSettings: strict),
    .testTarget(
        name: "BackgroundAssetsTests",
        dependencies: [
            "BackgroundAssets", "ExtensionFoundation", "AssetsClient", "AssetsWire", "AssetsOS", "SourceCompiler",
        ],
        swiftSettings: strict),
    .testTarget(
        name: "IntegrationTests",
        dependencies: [
            "AssetsClient", "AssetsExtensionHost", "AssetsModel", "AssetsSandbox", "AssetsStore", "AssetsWire",
            "AssetsOS",
            "CLinux", "CSQLite", "DevelopmentServer", "FixturePlan", "PowerCut", "RootHelperClient", "SourceCompiler",
        ],
        swiftSettings: strict),

    // What tests and benches need root for: they themselves run as an ordinary user.
    .target(name: "CRootHelper", path: "Tests/Fixtures/CRootHelper"),
    .target(
        name: "RootHelperClient", dependencies: ["AssetsOS"], path: "Tests/Fixtures/RootHelperClient",
        swiftSettings: strict),
    .executableTarget(
        name: "RootHelper", dependencies: ["RootHelperClient", "AssetsOS", "CLinux", "CRootHelper"],
        path: "Tests/Fixtures/RootHelper", swiftSettings: strict, linkerSettings: selfContained),

    // Power cuts at random moments, for a test and for a bench.
    .target(
        name: "PowerCut", dependencies: ["RootHelperClient", "AssetsClient", "AssetsWire", "AssetsOS", "CLinux"],
        path: "Tests/Fixtures/PowerCut", swiftSettings: strict),

    // A sample app and its extension, which the tests bundle, install and drive.
    .target(name: "FixturePlan", path: "Tests/Fixtures/FixturePlan", swiftSettings: strict),
    // Compiles sources as users write them; those of Tests/SourceCompatibility belong to no target.
    .target(name: "SourceCompiler", path: "Tests/Fixtures/SourceCompiler", swiftSettings: strict),
    .executableTarget(
        name: "FixtureApp", dependencies: ["BackgroundAssets", "FixturePlan"], path: "Tests/Fixtures/FixtureApp",
        swiftSettings: strict + [.treatWarning("DeprecatedDeclaration", as: .warning)]),
    // The same extension as a source of 2022 would have it, also in the language mode of its day.
    .executableTarget(
        name: "FixtureExtension2022", dependencies: ["BackgroundAssets", "ExtensionFoundation", "FixturePlan"],
        path: "Tests/Fixtures/FixtureExtension2022",
        swiftSettings: strict + [.swiftLanguageMode(.v5), .treatWarning("DeprecatedDeclaration", as: .warning)]),
    .executableTarget(
        name: "FixtureExtension",
        dependencies: ["BackgroundAssets", "ExtensionFoundation", "FixturePlan", "CLinux", "os"],
        path: "Tests/Fixtures/FixtureExtension",
        swiftSettings: strict + [.treatWarning("DeprecatedDeclaration", as: .warning)]),
    // One that goes to its limits and beyond.
    .executableTarget(
        name: "FixtureLimitExtension", dependencies: ["BackgroundAssets", "ExtensionFoundation", "FixturePlan"],
        path: "Tests/Fixtures/FixtureLimitExtension",
        swiftSettings: strict + [.treatWarning("DeprecatedDeclaration", as: .warning)]),
    .executableTarget(
        name: "FixtureEmptyExtension", dependencies: ["BackgroundAssets", "ExtensionFoundation"],
        path: "Tests/Fixtures/FixtureEmptyExtension", swiftSettings: strict),

    // What tries to get out of the sandbox: probes, the extension that runs them, a library of probes as others would
    // write it, and the process that none of them may reach.
    .target(name: "EscapeProbes", path: "Tests/Fixtures/EscapeProbes"),
    .executableTarget(
        name: "EscapeExtension", dependencies: ["BackgroundAssets", "ExtensionFoundation", "EscapeProbes"],
        path: "Tests/Fixtures/EscapeExtension", swiftSettings: strict,
        linkerSettings: [.unsafeFlags(["-Xlinker", "-s"])]),
    .target(
        name: "EscapeSample", path: "Tests/Fixtures/EscapeSample",
        cSettings: [.headerSearchPath("../EscapeProbes/include")],
        linkerSettings: [.unsafeFlags(["-static-stdlib", "-nostartfiles"])]),
    .executableTarget(name: "EscapeBystander", path: "Tests/Fixtures/EscapeBystander"),
]

/// What throws bytes at our parsers, each an executable of libFuzzer. scripts/fuzz builds them, with everything else
/// instrumented; nobody else can link them.
let fuzzers: [Target] =
    Context.environment["BACKGROUNDASSETS_FUZZ"] == nil
    ? []
    : [
        "FuzzHead": ["AssetsTransfer", "AssetsModel"], "FuzzFields": ["AssetsModel"], "FuzzDigests": ["AssetsModel"],
        "FuzzRedirects": ["AssetsModel"], "FuzzWire": ["AssetsWire"],
    ].map { name, dependencies in
        .executableTarget(
            name: name, dependencies: dependencies.map { .init(stringLiteral: $0) }, path: "Fuzz/\(name)",
            swiftSettings: strict)
    }

/// Targets whose folder exists, without those that need one that does not.
func complete(_ targets: [Target]) -> [Target] {
    let names = Set(targets.map(\.name))
    let kept = targets.filter { target in
        target.dependencies.allSatisfy { dependency in
            guard case .byNameItem(let name, _) = dependency else { return true }
            return names.contains(name)
        }
    }
    return kept.count == targets.count ? kept : complete(kept)
}

let shown = complete(
    libraries.filter { present($0, $0.type == .plugin ? "Plugins" : "Sources") }
        + tests.filter { present($0, "Tests") } + fuzzers)
let names = Set(shown.map(\.name))

let package = Package(
    name: "background-assets",
    products: [
        .library(
            name: "BackgroundAssets", type: .dynamic,
            targets: ["BackgroundAssets", "ExtensionFoundation", "OSLog", "os"]),
        .library(name: "FoundationRepair", type: .dynamic, targets: ["FoundationRepair"]),
        .library(name: "EscapeSample", type: .dynamic, targets: ["EscapeSample"]),
        .executable(name: "backgroundassetsd", targets: ["backgroundassetsd"]),
        .executable(name: "backgroundassets", targets: ["backgroundassets"]),
        .executable(name: "backgroundassets-debug", targets: ["backgroundassets-debug"]),
        .executable(name: "extension-launcher", targets: ["extension-launcher"]),
        .plugin(name: "BundleApp", targets: ["BundleApp"]),
    ].filter { product in
        names.contains(product.name)
    },
    targets: shown,
    swiftLanguageModes: [.v6]
)
