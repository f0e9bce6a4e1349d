// swift-tools-version: 6.2
// An app with a downloader extension, to copy and rename. Sources of an iOS or macOS app go into the two targets as they are.
import PackageDescription

let backgroundAssets = Target.Dependency.product(name: "BackgroundAssets", package: "background-assets")
/// Files that import only Foundation see what Foundation has on Apple's systems: URLRequest, group containers and the like.
let asOnApple: [SwiftSetting] = [.unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "BackgroundAssets"])]
// `swift package bundle` takes these files; the package manager has nothing to do with them.
let bundleFiles = ["Info.plist", "Entitlements.plist"]

let package = Package(
    name: "Template",
    products: [
        .executable(name: "TemplateApp", targets: ["TemplateApp"]),
        .executable(name: "TemplateDownloader", targets: ["TemplateDownloader"]),
    ],
    // Outside this repository: the address of background-assets, and a version.
    dependencies: [.package(name: "background-assets", path: "../..")],
    targets: [
        .executableTarget(
            name: "TemplateApp", dependencies: [backgroundAssets], exclude: bundleFiles, swiftSettings: asOnApple),
        .executableTarget(
            name: "TemplateDownloader", dependencies: [backgroundAssets], exclude: bundleFiles,
            swiftSettings: asOnApple),
    ],
    swiftLanguageModes: [.v6]
)
