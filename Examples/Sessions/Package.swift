// swift-tools-version: 6.2
// An app that keeps videos of conference sessions on this machine, and its downloader extension.
import PackageDescription

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]
let backgroundAssets = Target.Dependency.product(name: "BackgroundAssets", package: "background-assets")
// `swift package bundle` takes these files; the package manager has nothing to do with them.
let bundleFiles = ["Info.plist", "Entitlements.plist"]

let package = Package(
    name: "Sessions",
    products: [
        .executable(name: "Sessions", targets: ["Sessions"]),
        .executable(name: "SessionsDownloader", targets: ["SessionsDownloader"]),
    ],
    dependencies: [.package(name: "background-assets", path: "../..")],
    targets: [
        .target(name: "SessionsCore", dependencies: [backgroundAssets], swiftSettings: strict),
        .executableTarget(
            name: "Sessions", dependencies: ["SessionsCore", backgroundAssets], exclude: bundleFiles,
            swiftSettings: strict),
        .executableTarget(
            name: "SessionsDownloader", dependencies: ["SessionsCore", backgroundAssets], exclude: bundleFiles,
            swiftSettings: strict),
        .testTarget(name: "SessionsCoreTests", dependencies: ["SessionsCore"], swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
