import AssetsModel
import AssetsOS
import Glibc
import Testing

@testable import AssetsInstaller

@Suite("Checking a bundle")
struct BundleValidatorTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// All must stand in the error.
        var words: [String]
        var change: @Sendable (inout SampleApp) -> Void

        init(_ description: String, _ words: String..., change: @escaping @Sendable (inout SampleApp) -> Void) {
            testDescription = description
            self.words = words
            self.change = change
        }
    }

    private static let inner = "BAInitialDownloadRestrictions"

    static let required: [Case] =
        ["CFBundleIdentifier", "CFBundleExecutable", "BAManifestURL", "BAMaxInstallSize"].map { key in
            Case("\(key) is missing", "Game.app/Info.plist", key, "is missing") { $0.info[key] = nil }
        }
        + ["BADownloadAllowance", "BADownloadDomainAllowList"].map { key in
            Case("\(key) is missing", "Game.app/Info.plist", inner, key, "is missing") { $0.restrictions?[key] = nil }
        }
        + [
            Case("the dictionary is missing", inner, "is missing") { $0.restrictions = nil },
            Case("the essential size is missing", "BAEssentialMaxInstallSize", "BAEssentialDownloadAllowance") {
                $0.info["BAEssentialMaxInstallSize"] = nil
            },
            Case("no version", "CFBundleVersion", "is missing") {
                $0.info["CFBundleVersion"] = nil
                $0.info["CFBundleShortVersionString"] = nil
            },
            Case("the extension's identifier is missing", "Assets.appex/Info.plist", "CFBundleIdentifier") {
                $0.extensionInfo["CFBundleIdentifier"] = nil
            },
        ]

    static let types: [Case] = [
        Case("dictionary as array", inner, "is not a dictionary") { app in
            app.restrictions = nil
            app.info[inner] = "<array/>"
        },
        Case("allowance as text", "BADownloadAllowance", "a number of bytes") {
            $0.restrictions?["BADownloadAllowance"] = "<string>1000</string>"
        },
        Case("allowance as boolean", "BADownloadAllowance", "a number of bytes") {
            $0.restrictions?["BADownloadAllowance"] = "<true/>"
        },
        Case("allowance negative", "BADownloadAllowance", "negative") {
            $0.restrictions?["BADownloadAllowance"] = "<integer>-1</integer>"
        },
        Case("allowance with a fraction", "BADownloadAllowance", "fraction") {
            $0.restrictions?["BADownloadAllowance"] = "<real>1.5</real>"
        },
        Case("allowance not a number", "BADownloadAllowance", "bytes") {
            $0.restrictions?["BADownloadAllowance"] = "<real>nan</real>"
        },
        Case("allowance too large", "BADownloadAllowance", "bytes") {
            $0.restrictions?["BADownloadAllowance"] = "<integer>99999999999999999999</integer>"
        },
        Case("size as text", "BAMaxInstallSize", "a number of bytes") { $0.info["BAMaxInstallSize"] = "<string/>" },
        Case("domains as text", "BADownloadDomainAllowList", "an array of strings") {
            $0.restrictions?["BADownloadDomainAllowList"] = "<string>example.com</string>"
        },
        Case("a domain as number", "BADownloadDomainAllowList", "an array of strings") {
            $0.restrictions?["BADownloadDomainAllowList"] = "<array><integer>1</integer></array>"
        },
        Case("a domain with a scheme", "BADownloadDomainAllowList", "https://example.com", "no host name") {
            $0.restrictions?["BADownloadDomainAllowList"] = "<array><string>https://example.com</string></array>"
        },
        Case("manifest as number", "BAManifestURL", "a string") { $0.info["BAManifestURL"] = "<integer>1</integer>" },
        Case("attributes as text", "EXAppExtensionAttributes", "a dictionary") {
            $0.extensionInfo["EXAppExtensionAttributes"] = "<string>x</string>"
        },
        Case("groups as text", "application-groups", "an array of strings") { app in
            let plist = SampleApp.plist(["com.apple.security.application-groups": "<string>group.a</string>"])
            app.files["Entitlements.plist"] = (plist, 0o644)
        },
    ]

    static let misplaced: [Case] =
        ["BADownloadAllowance", "BAEssentialDownloadAllowance", "BADownloadDomainAllowList"].map { key in
            Case("\(key) at the root", key, "stands at the root but belongs in \(inner)") {
                $0.info[key] = $0.restrictions?.removeValue(forKey: key)
            }
        }
        + ["BAMaxInstallSize", "BAEssentialMaxInstallSize", "BAManifestURL"].flatMap { key in
            [
                Case("\(key) in the dictionary", key, "stands in \(inner) but belongs at the root") {
                    $0.restrictions?[key] = $0.info.removeValue(forKey: key)
                },
                Case("\(key) in the extension", "Assets.appex/Info.plist", key, "belongs in the app's") {
                    $0.extensionInfo[key] = $0.info.removeValue(forKey: key)
                },
            ]
        }

    static let values: [Case] =
        [
            "http://cdn.example.com/m", "http://127.0.0.1/m", "ftp://cdn.example.com/m", "cdn.example.com/m",
            "https:///m", "https://user:secret@cdn.example.com/m", "file:///etc/passwd",
        ].map { url in
            Case("manifest at \(url)", "BAManifestURL") { $0.info["BAManifestURL"] = "<string>\(url)</string>" }
        }
        + [
            "", "..", ".game", "com..game", "com/game", "com.game.", "com game", "com.späße", "com.game~1",
            String(repeating: "a", count: 223),
        ].map { identifier in
            Case("identifier \"\(identifier)\"", "CFBundleIdentifier") {
                $0.info["CFBundleIdentifier"] = "<string>\(identifier)</string>"
            }
        }
        + ["com.example.gameassets", "com.example.other.assets", "com.example.game", "com.example.game."].map { name in
            Case("extension \(name)", "Assets.appex/Info.plist", "CFBundleIdentifier") {
                $0.extensionInfo["CFBundleIdentifier"] = "<string>\(name)</string>"
            }
        }
        + [
            Case("no shared group", "application-groups", "names no group that") { $0.extensionGroups = ["group.x"] },
            Case("no group", "application-groups", "missing or empty") { $0.groups = [] },
            Case("a group that is a path", "application-groups", "../evil") { $0.groups = ["../evil"] },
            Case("a group that looks like a container", "application-groups", "group.x~1") {
                $0.groups = ["group.x~1"]
            },
            Case("a group whose container can have no name", "application-groups", "at most 222") {
                $0.groups = [String(repeating: "g", count: 223)]
            },
            Case("a name that moves the cursor", "CFBundleDisplayName") {
                $0.info["CFBundleDisplayName"] = "<string>a\u{202E}b</string>"
            },
            Case("packs that the system manages", "BAHasManagedAssetPacks") {
                $0.info["BAHasManagedAssetPacks"] = "<true/>"
            },
        ]

    static let files: [Case] =
        [
            "Info.plist", "Entitlements.plist", "Extensions/Assets.appex/Info.plist",
            "Extensions/Assets.appex/Entitlements.plist",
        ].flatMap { path in
            [
                Case("\(path) is missing", "Game.app/\(path)", "is missing") { $0.files[path] = .some(nil) },
                Case("\(path) is noise", "Game.app/\(path)", "is not a property list") {
                    $0.files[path] = ([UInt8](repeating: 0xA5, count: 900), 0o644)
                },
            ]
        }
        + [
            Case("too large a list", "Info.plist", "is larger than") {
                $0.files["Info.plist"] = ([UInt8](repeating: 0x20, count: 1 << 20 + 1), 0o644)
            },
            Case("a list of containers without end", "Info.plist", "is not a property list") {
                $0.files["Info.plist"] = (Array(String(repeating: "<array>", count: 100_000).utf8), 0o644)
            },
            Case("a list that is no dictionary", "Info.plist", "is not a property list") {
                $0.files["Info.plist"] = (Array("<plist><array/></plist>".utf8), 0o644)
            },
            Case("no executable", "CFBundleExecutable", "is missing") { $0.files["game"] = .some(nil) },
            Case("an executable that is none", "CFBundleExecutable", "not executable") {
                $0.files["game"] = ([1], 0o644)
            },
            Case("an executable outside", "CFBundleExecutable", "..") {
                $0.info["CFBundleExecutable"] = "<string>../../../bin/sh</string>"
            },
            Case("an absolute executable", "CFBundleExecutable") {
                $0.info["CFBundleExecutable"] = "<string>/bin/sh</string>"
            },
            Case("an executable that is a folder", "CFBundleExecutable", "no file") {
                $0.info["CFBundleExecutable"] = "<string>Extensions</string>"
            },
            Case("no executable in the extension", "Assets.appex", "CFBundleExecutable") {
                $0.files["Extensions/Assets.appex/assets"] = .some(nil)
            },
            Case("no extension", "Extensions holds no extension") { app in
                app.extensionInfo["EXAppExtensionAttributes"] =
                    "<dict><key>EXExtensionPointIdentifier</key><string>com.apple.widgetkit-extension</string></dict>"
            },
        ]

    @Test("What is wrong is named with its file and key", arguments: required + types + misplaced + values + files)
    func invalid(wrong: Case) async throws {
        try await inPlace { place in
            var app = SampleApp()
            wrong.change(&app)
            let error = try place.refusal(place.write(app.tar(), to: "a.tar"))
            #expect(error.code == .bundleInvalid)
            for word in wrong.words { #expect(error.description.contains(word), "\(error)") }
            #expect(!error.reason.hasSuffix("."))
        }
    }

    @Test("Two extensions for downloads are one too many, one of another kind is not")
    func extensions() async throws {
        try await inPlace { place in
            var app = SampleApp()
            for name in ["Info.plist", "Entitlements.plist"] {
                let path = "Extensions/Assets.appex/\(name)"
                let file = try #require(app.contents.first { $0.path == path })
                app.files["Extensions/Second.appex/\(name)"] = (file.bytes, file.mode)
            }
            let error = try place.refusal(place.write(app.tar(), to: "a.tar"))
            #expect(error.reason.contains("2 extensions"))
            let widget = SampleApp.plist([
                "EXAppExtensionAttributes":
                    "<dict><key>EXExtensionPointIdentifier</key><string>com.apple.widgetkit-extension</string></dict>"
            ])
            app.files["Extensions/Second.appex/Info.plist"] = (widget, 0o644)
            _ = try place.stage(place.write(app.tar(), to: "a.tar"))
        }
    }

    @Test("Plain http is for this machine in Developer Mode", arguments: ["127.0.0.1", "localhost:8080", "[::1]"])
    func loopback(host: String) async throws {
        try await inPlace { place in
            var app = SampleApp()
            app.info["BAManifestURL"] = "<string>http://\(host)/m.json</string>"
            let source = try place.write(app.tar(), to: "a.tar")
            #expect(
                try place.stage(source, allowsLoopbackHTTP: true).description.manifestURL == "http://\(host)/m.json")
            let error = try place.refusal(source)
            #expect(error.reason.contains("BAManifestURL"))
        }
    }

    @Test("Loopback http admits no other host", arguments: ["example.com", "127.0.0.1.example.com", "localhost.test"])
    func noLoopback(host: String) async throws {
        try await inPlace { place in
            var app = SampleApp()
            app.info["BAManifestURL"] = "<string>http://\(host)/m.json</string>"
            let source = try place.write(app.tar(), to: "a.tar")
            #expect(throws: AssetsError.self) { try place.stage(source, allowsLoopbackHTTP: true) }
        }
    }

    @Test("Optional keys have their defaults")
    func defaults() async throws {
        try await inPlace { place in
            var app = SampleApp()
            app.info["CFBundleDisplayName"] = nil
            app.info["CFBundleShortVersionString"] = nil
            app.info["BAEssentialMaxInstallSize"] = nil
            app.restrictions?["BAEssentialDownloadAllowance"] = nil
            app.restrictions?["BADownloadAllowance"] = "<real>5000</real>"
            let description = try place.stage(place.write(app.tar(), to: "a.tar")).description
            #expect(description.name == "com.example.game")
            #expect(description.version == "42" && description.build == "42")
            #expect(description.essentialMaxInstallSize == nil)
            #expect(description.restrictions.essentialDownloadAllowance == nil)
            #expect(description.restrictions.downloadAllowance == 5000)
        }
    }

    @Test("Binary property lists are read")
    func binary() throws {
        let list = try PropertyList(bytes: Self.binaryList, shown: "x")
        #expect(try list.string("a") == "b")
        #expect(try list.bytes("n") == 7)
    }

    @Test("Binary property lists changed at random are read or refused", arguments: 0..<200 as Range<UInt64>)
    func mutatedBinary(seed: UInt64) {
        var generator = SplitMix(state: seed)
        for _ in 0..<50 {
            var bytes = Self.binaryList
            for _ in 0..<(1 + generator.next() % 4) {
                bytes[8 + Int(generator.next() % UInt64(bytes.count - 8))] = UInt8(truncatingIfNeeded: generator.next())
            }
            do throws(AssetsError) {
                let list = try PropertyList(bytes: bytes, shown: "x")
                _ = try? list.string("a")
                _ = try? list.bytes("n")
                _ = try? list.strings("s", limit: 10)
            } catch {
                #expect(error.code == .bundleInvalid)
            }
        }
    }

    /// {"a": "b", "n": 7, "s": ["b"]}
    private static let binaryList: [UInt8] = {
        var bytes = Array("bplist00".utf8)
        let objects: [[UInt8]] = [
            [0xD3, 1, 2, 3, 4, 5, 6], [0x51, 0x61], [0x51, 0x6E], [0x51, 0x73], [0x51, 0x62], [0x10, 7], [0xA1, 4],
        ]
        var offsets: [UInt8] = []
        for object in objects {
            offsets.append(UInt8(bytes.count))
            bytes += object
        }
        let table = UInt8(bytes.count)
        bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
        for number in [UInt8(objects.count), 0, table] { bytes += [0, 0, 0, 0, 0, 0, 0, number] }
        return bytes
    }()
}
