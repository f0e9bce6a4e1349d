// Makes the bundle of the sample app, whole or broken.
import AssetsOS
import FixturePlan
import Foundation
import Testing

typealias FixtureItem = FixturePlan.Item

/// An app bundle to be written.
struct FixtureBundle {
    static let identifier = "org.example.fixture"

    var identifier = Self.identifier
    var name = "Fixture"
    var manifestURL: String
    var downloadAllowance = 256 << 20
    /// nil: without the essential keys, so without a gate.
    var essentialAllowance: Int? = 256 << 20
    var domains = ["localhost"]
    var hasExtension = true
    var program = Products.app
    var extensionProgram = Products.appExtension
    /// Libraries that the app brings along: an extension can read no others but the system's.
    var frameworks: [String] = []
    /// What the extension of 2022 schedules when the app is installed.
    var itemsOf2022: [FixtureItem] = []
    /// Set in the app's Info.plist after everything else.
    var overrides: [String: Any] = [:]
    /// The same for the extension's.
    var extensionOverrides: [String: Any] = [:]

    var group: String { "group." + identifier }
    var extensionIdentifier: String { identifier + ".extension" }

    init(manifestURL: String) { self.manifestURL = manifestURL }

    /// Writes `<name>.app` into a folder; returns its path.
    @discardableResult
    func write(to folder: String) throws -> String {
        let app = "\(folder)/\(name).app"
        let appex = app + "/Extensions/Downloader.appex"
        try Files.makeFolder(app)
        try list(app + "/Info.plist", information)
        try list(app + "/Entitlements.plist", ["com.apple.security.application-groups": [group]])
        try copy(program, to: app + "/FixtureApp")
        try takeLibraries(to: app + "/lib")
        for library in frameworks {
            try Files.makeFolder(app + "/Frameworks")
            try copy(library, to: app + "/Frameworks/" + (library as NSString).lastPathComponent)
        }
        guard hasExtension else { return app }
        try Files.makeFolder(appex)
        try list(
            appex + "/Info.plist",
            [
                "CFBundleIdentifier": extensionIdentifier, "CFBundleExecutable": "FixtureExtension",
                "CFBundleVersion": "1", "CFBundleName": "Downloader",
                "EXAppExtensionAttributes": [
                    "EXExtensionPointIdentifier": "com.apple.background-asset-downloader-extension"
                ],
                FixtureName.items: String(decoding: try JSONEncoder().encode(itemsOf2022), as: UTF8.self),
            ].merging(extensionOverrides) { $1 })
        try list(appex + "/Entitlements.plist", ["com.apple.security.application-groups": [group]])
        try copy(extensionProgram, to: appex + "/FixtureExtension")
        return app
    }

    private var information: [String: Any] {
        var restrictions: [String: Any] = [
            "BADownloadAllowance": downloadAllowance, "BADownloadDomainAllowList": domains,
        ]
        var result: [String: Any] = [
            "CFBundleIdentifier": identifier, "CFBundleExecutable": "FixtureApp", "CFBundleName": name,
            "CFBundleShortVersionString": "1.0", "CFBundleVersion": "1", "BAManifestURL": manifestURL,
            "BAMaxInstallSize": 1 << 30,
        ]
        if let essentialAllowance {
            restrictions["BAEssentialDownloadAllowance"] = essentialAllowance
            result["BAEssentialMaxInstallSize"] = 1 << 30
        }
        result["BAInitialDownloadRestrictions"] = restrictions
        return result.merging(overrides) { $1 }
    }

    private func list(_ path: String, _ values: [String: Any]) throws {
        let data = try PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0)
        try Files.write(path, data)
    }

    private func copy(_ program: String, to path: String) throws {
        try FileManager.default.copyItem(atPath: program, toPath: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    }

    /// Where the toolchain's folder is closed to this user, scripts/run-tests has put its libraries beside the tests.
    private func takeLibraries(to folder: String) throws {
        guard Files.exists(Products.folder + "/libswiftCore.so") else { return }
        try Files.makeFolder(folder)
        for library in Files.names(in: Products.folder) where library.hasSuffix(".so") {
            try FileManager.default.copyItem(atPath: Products.folder + "/" + library, toPath: folder + "/" + library)
        }
    }

    // MARK: Archives

    /// Packs a written bundle; the suffix of `archive` says how.
    static func pack(_ app: String, as archive: String) async throws {
        let folder = (app as NSString).deletingLastPathComponent
        let name = (app as NSString).lastPathComponent
        let command =
            archive.hasSuffix(".zip")
            ? ["zip", "-q", "-r", "-y", archive, name]
            : ["tar", "-C", folder, archive.hasSuffix(".zst") ? "--zstd" : "--gzip", "-cf", archive, name]
        let result = try await Program.run("/usr/bin/env", command, folder: folder)
        guard result.exit.isSuccess else { throw HarnessError("\(command): \(result.errors)") }
    }
}
