import AssetsModel
import AssetsOS
import Glibc
import Synchronization
import Testing

@testable import AssetsInstaller

@Suite("Staging a bundle")
struct StagingTests {
    private static let expected = AppDescription(
        bundleIdentifier: "com.example.game", name: "Spiel", version: "1.2", build: "42", bundleFolder: "Game.app",
        executable: "game", manifestURL: "https://cdn.example.com/manifest.json",
        restrictions: DownloadRestrictions(
            downloadAllowance: 1000, essentialDownloadAllowance: 500, allowedDomains: ["*.example.com"]),
        maxInstallSize: 3000, essentialMaxInstallSize: 2000, extensionIdentifier: "com.example.game.assets",
        extensionExecutable: "Extensions/Assets.appex/assets",
        groups: ["group.com.example.game", "group.com.example.other"], sharedGroups: ["group.com.example.game"])

    private static var zip: [UInt8] {
        var zip = ZipFile()
        zip.add("Game.app/", mode: 0o040755)
        for file in SampleApp().contents { zip.add("Game.app/\(file.path)", file.bytes, mode: 0o100000 | file.mode) }
        return zip.ended
    }

    private static let archives: [(name: String, make: @Sendable () -> [UInt8])] = [
        ("Game.tar", { SampleApp().tar() }), ("Game.tar.gz", { gzipped(SampleApp().tar()) }),
        ("Game.tar.zst", { zstandard(SampleApp().tar()) }), ("Game.zip", { zip }),
    ]

    @Test("Every kind of archive gives the same bundle", arguments: archives.map(\.name))
    func archive(name: String) async throws {
        try await inPlace { place in
            let make = try #require(Self.archives.first { $0.name == name }).make
            let source = try place.write(make(), to: name)
            let staged = try place.stage(source)
            #expect(staged.description == Self.expected)
            #expect(staged.bytes == SampleApp().contents.reduce(0) { $0 + Int64($1.bytes.count) })
            for file in SampleApp().contents {
                let path = place.staged + "/Game.app/" + file.path
                #expect(try place.contents(path) == file.bytes)
                #expect(try place.mode(path) == mode_t(file.mode))
            }
            #expect(try place.names(place.staged) == ["Game.app"])
        }
    }

    @Test("A folder gives the same bundle, and stays as it is")
    func folder() async throws {
        try await inPlace { place in
            let source = try SampleApp().write(to: place)
            let staged = try place.stage(source + "/")
            #expect(staged.description == Self.expected)
            for file in SampleApp().contents {
                #expect(try place.contents(place.staged + "/Game.app/" + file.path) == file.bytes)
                #expect(try place.contents(source + "/" + file.path) == file.bytes)
            }
        }
    }

    @Test("Names are kept that UTF-8, long paths and a leading ./ make unusual")
    func unusualNames() async throws {
        try await inPlace { place in
            let deep = (0..<20).map { "ordner\($0)" }.joined(separator: "/")
            let tar = SampleApp().tar(top: "./Jäger 猫.app") { tar in
                tar.add("./Jäger 猫.app/\(deep)/datei.bin", [1, 2, 3])
                tar.add("./Jäger 猫.app/a//./b", [4])
            }
            let staged = try place.stage(place.write(zstandard(tar), to: "a.tar.zst"))
            #expect(staged.description.bundleFolder == "Jäger 猫.app")
            #expect(try place.contents(place.staged + "/Jäger 猫.app/\(deep)/datei.bin") == [1, 2, 3])
            #expect(try place.contents(place.staged + "/Jäger 猫.app/a/b") == [4])
        }
    }

    @Test("What is left of a killed run is replaced")
    func leftOver() async throws {
        try await inPlace { place in
            for name in ["device/Applications", "device/Applications/.staging", "device/\(Place.staging)"] {
                try place.makeFolder(name)
            }
            _ = try place.write([1], to: "device/\(Place.staging)/old")
            _ = try place.stage(place.write(SampleApp().tar(), to: "a.tar"))
            #expect(try place.names(place.staged) == ["Game.app"])
        }
    }

    @Test("Set-id bits and odd modes do not survive", arguments: [0o6755, 0o1777, 0o100])
    func modes(mode: Int) async throws {
        try await inPlace { place in
            let tar = SampleApp().tar { $0.add("Game.app/tool", [1], mode: mode) }
            _ = try place.stage(place.write(tar, to: "a.tar"))
            #expect(try place.mode(place.staged + "/Game.app/tool") == 0o755)
            #expect(try place.mode(place.staged + "/Game.app/Info.plist") == 0o644)
            #expect(try place.mode(place.staged + "/Game.app/Extensions") == 0o755)
        }
    }

    @Test("Links inside the bundle are kept, hard links become files")
    func links() async throws {
        try await inPlace { place in
            let tar = SampleApp().tar { tar in
                tar.add("Game.app/Frameworks/lib.so", type: "2", link: "lib.so.1")
                tar.add("Game.app/Frameworks/lib.so.1", [7, 7, 7], mode: 0o755)
                tar.add("Game.app/up", type: "2", link: "Frameworks/../Info.plist")
                tar.add("Game.app/hard", type: "1", link: "Game.app/Frameworks/lib.so.1")
            }
            _ = try place.stage(place.write(tar, to: "a.tar"))
            let app = place.staged + "/Game.app"
            #expect(try place.contents(app + "/Frameworks/lib.so") == [7, 7, 7])
            #expect(try place.contents(app + "/hard") == [7, 7, 7])
            #expect(try place.mode(app + "/hard") == 0o755)
            var status = stat()
            try check("lstat") { lstat(app + "/hard", &status) }
            #expect(status.st_nlink == 1)
        }
    }

    @Test("Folder links inside are copied as links, outside they are refused")
    func folderLinks() async throws {
        try await inPlace { place in
            let source = try SampleApp().write(to: place)
            try check("symlink") { symlink("Info.plist", source + "/inside") }
            _ = try place.stage(source)
            #expect(try place.contents(place.staged + "/Game.app/inside") == place.contents(source + "/Info.plist"))
            try check("symlink") { symlink("../Game.app/Info.plist", source + "/outside") }
            let error = try place.refusal(source)
            #expect(error.reason.contains("outside leads out of the bundle"))
        }
    }

    @Test("A large file arrives whole, with progress up to the end")
    func largeFile() async throws {
        try await inPlace { place in
            var generator = SystemRandomNumberGenerator()
            let content = (0..<600_000).flatMap { _ in
                withUnsafeBytes(of: generator.next()) { Array($0) }
            }
            let tar = SampleApp().tar { $0.add("Game.app/data.bin", content) }
            let source = try place.write(gzipped(tar), to: "a.tar.gz")
            let reports = Mutex<[Int64]>([])
            let size = Int64(gzipped(tar).count)
            _ = try place.stage(
                source,
                progress: { done, total in
                    #expect(total == size)
                    reports.withLock { $0.append(done) }
                })
            #expect(try place.contents(place.staged + "/Game.app/data.bin") == content)
            let seen = reports.withLock { $0 }
            #expect(seen == seen.sorted() && seen.last == size && seen.count >= 4)
        }
    }

    @Test("Cancelling ends with nothing left", arguments: [1, 3, 6, 9])
    func cancel(look: Int) async throws {
        try await inPlace { place in
            let looks = Mutex(0)
            let source = try place.write(SampleApp().tar(), to: "a.tar")
            let error = try #require(throws: AssetsError.self) {
                try place.stage(
                    source,
                    isCancelled: {
                        looks.withLock {
                            $0 += 1
                            return $0 >= look
                        }
                    })
            }
            #expect(error.code == .cancelled)
            #expect(!place.exists(place.staged))
        }
    }

    @Test("A source that is not there or is no bundle is named")
    func noSource() async throws {
        try await inPlace { place in
            let missing = try place.refusal(place.folder + "/none.tar")
            #expect(missing.code == .sourceUnreachable)
            let relative = try place.refusal("relative.tar")
            #expect(relative.code == .usage)
            try place.makeFolder("folder")
            let folder = try place.refusal(place.folder + "/folder")
            #expect(folder.code == .archiveInvalid)
            try check("mkfifo") { mkfifo(place.folder + "/pipe.tar", 0o600) }
            let pipe = try place.refusal(place.folder + "/pipe.tar")
            #expect(pipe.code == .archiveInvalid)
        }
    }

    @Test("A full or read-only device is an error of storage")
    func unwritable() async throws {
        try await inPlace { place in
            let source = try place.write(SampleApp().tar(), to: "a.tar")
            _ = try place.write([], to: "device/Applications")
            let error = try #require(throws: AssetsError.self) { try place.stage(source) }
            #expect(error.code == .storageFailed)
        }
    }
}
