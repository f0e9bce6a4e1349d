// A device folder for each test, and an app bundle that passes every check.
import AssetsModel
import AssetsOS
import Glibc
import Testing

@testable import AssetsInstaller

/// A fresh folder with a device's root in it.
struct Place {
    let folder: String
    var root: String { folder + "/device" }
    static let staging = "Applications/.staging/one"

    func write(_ bytes: [UInt8], to name: String, mode: mode_t = 0o644) throws -> String {
        let path = folder + "/" + name
        let fd = try check("open") { open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode) }
        let file = Descriptor(owning: fd)
        var done = 0
        while done < bytes.count {
            done += try check("write") {
                bytes.withUnsafeBytes { Glibc.write(fd, $0.baseAddress?.advanced(by: done), $0.count - done) }
            }
        }
        try file.close()
        return path
    }

    func contents(_ path: String) throws -> [UInt8] {
        let fd = try check("open") { open(path, O_RDONLY | O_CLOEXEC) }
        defer { close(fd) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = try check("read") { read(fd, &buffer, buffer.count) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    func makeFolder(_ name: String) throws { try check("mkdir") { mkdir(folder + "/" + name, 0o755) } }

    func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    func mode(_ path: String) throws -> mode_t {
        var status = stat()
        try check("lstat") { lstat(path, &status) }
        return status.st_mode & 0o7777
    }

    func names(_ path: String) throws -> [String] {
        try namesInDirectory(Descriptor.directory(path), limit: .max).map { name in
            String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    func stage(
        _ source: String, limits: StagingLimits = StagingLimits(), allowsLoopbackHTTP: Bool = false,
        isCancelled: @escaping @Sendable () -> Bool = { false },
        progress: @escaping @Sendable (Int64, Int64) -> Void = { _, _ in }
    ) throws(AssetsError) -> StagedBundle {
        try BundleStager(root: root, limits: limits).stage(
            source: source, into: Self.staging, allowsLoopbackHTTP: allowsLoopbackHTTP, isCancelled: isCancelled,
            progress: progress)
    }

    /// Stages `source`, which must fail and leave nothing; returns why.
    func refusal(_ source: String, limits: StagingLimits = StagingLimits()) throws -> AssetsError {
        let error = try #require(throws: AssetsError.self) { try stage(source, limits: limits) }
        #expect(!exists(root + "/" + Self.staging))
        return error
    }

    var staged: String { root + "/" + Self.staging }
}

func inPlace(_ body: (Place) async throws -> Void) async throws {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/installer.XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer {
        let name = folder.split(separator: "/").last.map(String.init) ?? ""
        if let parent = try? Descriptor.directory(parent) { try? removeTree(name, in: parent) }
    }
    let place = Place(folder: folder)
    try place.makeFolder("device")
    try await body(place)
}

/// The text of an app bundle's files; tests change what they are about.
struct SampleApp {
    /// Keys of the app's Info.plist and their values as XML.
    var info: [String: String] = [
        "CFBundleIdentifier": "<string>com.example.game</string>",
        "CFBundleDisplayName": "<string>Spiel</string>",
        "CFBundleShortVersionString": "<string>1.2</string>",
        "CFBundleVersion": "<string>42</string>",
        "CFBundleExecutable": "<string>game</string>",
        "BAManifestURL": "<string>https://cdn.example.com/manifest.json</string>",
        "BAMaxInstallSize": "<integer>3000</integer>",
        "BAEssentialMaxInstallSize": "<integer>2000</integer>",
    ]
    /// Keys of BAInitialDownloadRestrictions; nil leaves the dictionary out.
    var restrictions: [String: String]? = [
        "BADownloadAllowance": "<integer>1000</integer>",
        "BAEssentialDownloadAllowance": "<integer>500</integer>",
        "BADownloadDomainAllowList": "<array><string>*.example.com</string></array>",
    ]
    var extensionInfo: [String: String] = [
        "CFBundleIdentifier": "<string>com.example.game.assets</string>",
        "CFBundleExecutable": "<string>assets</string>",
        "EXAppExtensionAttributes": """
        <dict><key>EXExtensionPointIdentifier</key>
        <string>com.apple.background-asset-downloader-extension</string></dict>
        """,
    ]
    var groups = ["group.com.example.game", "group.com.example.other"]
    var extensionGroups = ["group.com.example.third", "group.com.example.game"]
    /// Replaces or adds files; nil removes one.
    var files: [String: (bytes: [UInt8], mode: Int)?] = [:]

    static func plist(_ keys: [String: String]) -> [UInt8] {
        let body = keys.sorted { $0.key < $1.key }.map { "<key>\($0.key)</key>\($0.value)" }.joined(separator: "\n")
        return Array(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0"><dict>
            \(body)
            </dict></plist>
            """.utf8)
    }

    private static func entitlements(_ groups: [String]) -> [UInt8] {
        let items = groups.map { "<string>\($0)</string>" }.joined()
        return plist(["com.apple.security.application-groups": "<array>\(items)</array>"])
    }

    /// Paths below the app's folder, in order.
    var contents: [(path: String, bytes: [UInt8], mode: Int)] {
        var keys = info
        if let restrictions {
            keys["BAInitialDownloadRestrictions"] =
                "<dict>"
                + restrictions.sorted { $0.key < $1.key }.map { "<key>\($0.key)</key>\($0.value)" }.joined()
                + "</dict>"
        }
        var all: [String: (bytes: [UInt8], mode: Int)?] = [
            "Info.plist": (Self.plist(keys), 0o644),
            "Entitlements.plist": (Self.entitlements(groups), 0o644),
            "game": (Array("#!/bin/sh\n".utf8), 0o755),
            "Extensions/Assets.appex/Info.plist": (Self.plist(extensionInfo), 0o644),
            "Extensions/Assets.appex/Entitlements.plist": (Self.entitlements(extensionGroups), 0o644),
            "Extensions/Assets.appex/assets": (Array("#!/bin/sh\nexit\n".utf8), 0o755),
        ]
        for (path, file) in files { all[path] = .some(file) }
        return all.sorted { $0.key < $1.key }.compactMap { path, file in
            file.map { (path: path, bytes: $0.bytes, mode: $0.mode) }
        }
    }

    /// A tar file with folders; `then` adds to it before it ends.
    func tar(top: String = "Game.app", then more: (inout TarFile) -> Void = { _ in }) -> [UInt8] {
        var tar = TarFile()
        tar.add("\(top)/", type: "5", mode: 0o755)
        tar.add("\(top)/Extensions/", type: "5", mode: 0o755)
        for file in contents { tar.add("\(top)/\(file.path)", file.bytes, mode: file.mode) }
        more(&tar)
        return tar.ended
    }

    /// Writes the bundle as a folder of the place.
    func write(to place: Place, name: String = "Game.app") throws -> String {
        try place.makeFolder(name)
        try place.makeFolder("\(name)/Extensions")
        try place.makeFolder("\(name)/Extensions/Assets.appex")
        for file in contents { _ = try place.write(file.bytes, to: "\(name)/\(file.path)", mode: mode_t(file.mode)) }
        return place.folder + "/" + name
    }
}
