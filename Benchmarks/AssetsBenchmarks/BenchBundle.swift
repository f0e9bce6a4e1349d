// The bundle of the app that is installed.
internal import BenchmarkKit
internal import Glibc

/// A minimal app with its extension, of the executables BenchApp and BenchExtension of this build.
struct BenchBundle {
    static let identifier = "org.backgroundassets.bench"
    static let group = "group.org.backgroundassets.bench"
    /// Bytes that the app may download before it is launched: more than any bench needs.
    private static let allowance = 1_000_000_000

    /// Path of the folder `BenchApp.app`.
    let path: String

    init(in folder: String, manifestURL: String) throws {
        path = folder + "/BenchApp.app"
        let appex = path + "/Extensions/BenchExtension.appex"
        try Folder.make(appex)
        try Folder.copy(Program.ours("BenchApp"), to: path + "/BenchApp")
        try Folder.copy(Program.ours("BenchExtension"), to: appex + "/BenchExtension")
        try Folder.write(Self.appProperties(manifestURL), to: path + "/Info.plist")
        try Folder.write(Self.extensionProperties, to: appex + "/Info.plist")
        for place in [path, appex] { try Folder.write(Self.entitlements, to: place + "/Entitlements.plist") }
    }

    /// Packs the bundle and returns the bytes of the archive.
    func archive(to archive: String, log: String) throws -> Int {
        let parent = String(path.prefix(path.count - "/BenchApp.app".count))
        _ = try Program.run(
            Program.find("tar"), ["--zstd", "-C", parent, "-cf", archive, "BenchApp.app"], log: log)
        return try Folder.size(archive)
    }

    private static func appProperties(_ manifestURL: String) -> String {
        list(
            """
            <key>CFBundleIdentifier</key><string>\(identifier)</string>
            <key>CFBundleName</key><string>Bench</string>
            <key>CFBundleExecutable</key><string>BenchApp</string>
            <key>CFBundleShortVersionString</key><string>1.0</string>
            <key>CFBundleVersion</key><string>1</string>
            <key>BAManifestURL</key><string>\(manifestURL)</string>
            <key>BAMaxInstallSize</key><integer>\(allowance)</integer>
            <key>BAEssentialMaxInstallSize</key><integer>\(allowance)</integer>
            <key>BAInitialDownloadRestrictions</key>
            <dict>
                <key>BADownloadAllowance</key><integer>\(allowance)</integer>
                <key>BAEssentialDownloadAllowance</key><integer>\(allowance)</integer>
                <key>BADownloadDomainAllowList</key><array><string>localhost</string></array>
            </dict>
            """)
    }

    private static let extensionProperties = list(
        """
        <key>CFBundleIdentifier</key><string>\(identifier).extension</string>
        <key>CFBundleExecutable</key><string>BenchExtension</string>
        <key>EXAppExtensionAttributes</key>
        <dict>
            <key>EXExtensionPointIdentifier</key><string>com.apple.background-asset-downloader-extension</string>
        </dict>
        """)

    private static let entitlements = list(
        "<key>com.apple.security.application-groups</key><array><string>\(group)</string></array>")

    private static func list(_ content: String) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict>
        \(content)
        </dict></plist>

        """
    }
}
