import AssetsModel
import AssetsOS
import Glibc
import Testing

@testable import AssetsInstaller

@Suite("Hostile archives")
struct HostileArchiveTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Part of the reason.
        var reason: String
        var add: @Sendable (inout TarFile) -> Void
    }

    static let entries: [Case] = [
        Case(testDescription: "absolute path", reason: "absolute path") { $0.add("/etc/evil", [1]) },
        Case(testDescription: "parent", reason: "\"..\"") { $0.add("Game.app/../../evil", [1]) },
        Case(testDescription: "parent at the end", reason: "\"..\"") { $0.add("Game.app/..", type: "5") },
        Case(testDescription: "second top folder", reason: "beside") { $0.add("Other.app/x", [1]) },
        Case(testDescription: "file at the top", reason: "beside") { $0.add("evil", [1]) },
        Case(testDescription: "absolute link", reason: "absolute") {
            $0.add("Game.app/link", type: "2", link: "/etc/passwd")
        },
        Case(testDescription: "link out", reason: "leads out") { $0.add("Game.app/link", type: "2", link: "../..") },
        Case(testDescription: "link out by way of a link", reason: "leads out") {
            $0.add("Game.app/a", type: "2", link: "Extensions")
            $0.add("Game.app/b", type: "2", link: "a/../../x")
        },
        Case(testDescription: "writing through a link", reason: "twice") {
            $0.add("Game.app/link", type: "2", link: "../../..")
            $0.add("Game.app/link/evil", [1])
        },
        Case(testDescription: "link to nothing", reason: "leads nowhere") {
            $0.add("Game.app/link", type: "2", link: "none")
        },
        Case(testDescription: "link to itself", reason: "leads nowhere") {
            $0.add("Game.app/link", type: "2", link: "link")
        },
        Case(testDescription: "hard link out", reason: "\"..\"") {
            $0.add("Game.app/hard", type: "1", link: "../../../etc/passwd")
        },
        Case(testDescription: "hard link to an absolute path", reason: "absolute") {
            $0.add("Game.app/hard", type: "1", link: "/etc/passwd")
        },
        Case(testDescription: "hard link to a folder", reason: "no file before it") {
            $0.add("Game.app/hard", type: "1", link: "Game.app/Extensions")
        },
        Case(testDescription: "hard link to nothing", reason: "no file before it") {
            $0.add("Game.app/hard", type: "1", link: "Game.app/none")
        },
        Case(testDescription: "character device", reason: "neither") { $0.add("Game.app/null", type: "3") },
        Case(testDescription: "block device", reason: "neither") { $0.add("Game.app/disk", type: "4") },
        Case(testDescription: "named pipe", reason: "neither") { $0.add("Game.app/pipe", type: "6") },
        Case(testDescription: "file twice", reason: "twice") { $0.add("Game.app/Info.plist", [1]) },
        Case(testDescription: "folder twice", reason: "twice") { $0.add("Game.app/Extensions/", type: "5") },
        Case(testDescription: "file where a folder is", reason: "twice") { $0.add("Game.app/Extensions", [1]) },
        Case(testDescription: "folder where a file is", reason: "twice") { $0.add("Game.app/game/x", [1]) },
        Case(testDescription: "folder entry where a file is", reason: "twice") { $0.add("Game.app/game/", type: "5") },
        Case(testDescription: "link where a file is", reason: "twice") {
            $0.add("Game.app/game", type: "2", link: "Info.plist")
        },
        Case(testDescription: "name that is not UTF-8", reason: "UTF-8") {
            $0.add(nameBytes: Array("Game.app/".utf8) + [0xFF, 0xFE])
        },
        Case(testDescription: "control character", reason: "control character") { $0.add("Game.app/a\u{1B}[2J", [1]) },
        Case(testDescription: "line break", reason: "control character") { $0.add("Game.app/a\nb", [1]) },
        Case(testDescription: "long path", reason: "too long") {
            $0.add("Game.app/" + String(repeating: "a/", count: 600), [1])
        },
        Case(testDescription: "long name", reason: "too long") {
            $0.add("Game.app/" + String(repeating: "a", count: 256), [1])
        },
        Case(testDescription: "deep path", reason: "too deep") {
            $0.add("Game.app/" + String(repeating: "a/", count: 64) + "b", [1])
        },
    ]

    @Test("An archive with a hostile entry is refused and leaves nothing", arguments: entries)
    func entry(entry: Case) async throws {
        try await inPlace { place in
            let tar = SampleApp().tar { entry.add(&$0) }
            let error = try place.refusal(place.write(tar, to: "evil.tar"))
            #expect(error.code == .archiveInvalid)
            #expect(error.reason.contains(entry.reason), "\(error)")
            #expect(error.description.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            #expect(try place.names(place.folder) == ["device", "evil.tar"])
        }
    }

    @Test("A top that is no folder X.app is refused", arguments: ["Game", "Game.apps", ".app", "game.APP"])
    func top(name: String) async throws {
        try await inPlace { place in
            let error = try place.refusal(place.write(SampleApp().tar(top: name), to: "a.tar"))
            #expect(error.code == .archiveInvalid && error.reason.contains("does not end in .app"))
        }
    }

    @Test("A file or link that calls itself X.app is refused", arguments: ["0", "2"])
    func topIsFile(type: String) async throws {
        try await inPlace { place in
            var tar = TarFile()
            tar.add("Game.app", type: Character(type), link: type == "2" ? "." : "")
            let error = try place.refusal(place.write(tar.ended, to: "a.tar"))
            #expect(error.reason.contains("is not a folder"))
        }
    }

    @Test("Names that only case tells apart are both there")
    func caseMatters() async throws {
        try await inPlace { place in
            let tar = SampleApp().tar { tar in
                tar.add("Game.app/readme", [1])
                tar.add("Game.app/README", [2])
            }
            _ = try place.stage(place.write(tar, to: "a.tar"))
            #expect(try place.contents(place.staged + "/Game.app/README") == [2])
            #expect(try place.contents(place.staged + "/Game.app/readme") == [1])
        }
    }

    // MARK: Damage

    @Test("An archive cut short anywhere is told as such", arguments: ["tar", "tar.gz", "tar.zst", "zip"])
    func cutShort(kind: String) async throws {
        try await inPlace { place in
            let tar = SampleApp().tar()
            var zip = ZipFile()
            for file in SampleApp().contents {
                zip.add("Game.app/\(file.path)", file.bytes, mode: 0o100000 | file.mode)
            }
            let whole = ["tar": tar, "tar.gz": gzipped(tar), "tar.zst": zstandard(tar), "zip": zip.ended]
            let bytes = try #require(whole[kind])
            // Of a tar file the second empty block may be missing; everything before must be there.
            let last = kind == "tar" ? bytes.count - 1024 : bytes.count - 1
            for length in Array(stride(from: 0, to: last, by: 331)) + [last] {
                let error = try place.refusal(place.write(Array(bytes[..<length]), to: "cut.\(kind)"))
                #expect(error.code == .archiveInvalid, "\(length): \(error)")
                #expect(
                    error.reason == "\(place.folder)/cut.\(kind): the archive ended early"
                        || length < 512 && error.reason.contains("no archive"), "\(length): \(error)")
            }
        }
    }

    @Test("A changed byte in a checked stream is found", arguments: ["tar.gz", "zip"])
    func changed(kind: String) async throws {
        try await inPlace { place in
            let app = SampleApp(files: ["data": ([UInt8](repeating: 9, count: 100_000), 0o644)])
            var zip = ZipFile()
            for file in app.contents { zip.add("Game.app/\(file.path)", file.bytes, mode: 0o100000 | file.mode) }
            var bytes = kind == "zip" ? zip.ended : gzipped(app.tar())
            bytes[bytes.count - 60_000] ^= 0x40
            let error = try place.refusal(place.write(bytes, to: "a.\(kind)"))
            #expect(error.code == .archiveInvalid, "\(error)")
        }
    }

    @Test("Damage behind the last entry is found")
    func changedTrailer() async throws {
        try await inPlace { place in
            var bytes = gzipped(SampleApp().tar() + [UInt8](repeating: 0, count: 200_000))
            bytes[bytes.count - 6] ^= 1
            let error = try place.refusal(place.write(bytes, to: "a.tar.gz"))
            #expect(error.code == .archiveInvalid)
        }
    }

    @Test("Noise is no archive", arguments: 0..<10 as Range<UInt64>)
    func noise(seed: UInt64) async throws {
        try await inPlace { place in
            var generator = SplitMix(state: seed)
            for size in [1, 100, 10_000] {
                let bytes = (0..<size).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
                let error = try place.refusal(place.write(bytes, to: "noise"))
                #expect(error.code == .archiveInvalid)
            }
        }
    }

    @Test("Bytes changed at random never do harm outside", arguments: 0..<40 as Range<UInt64>)
    func mutations(seed: UInt64) async throws {
        try await inPlace { place in
            var generator = SplitMix(state: seed)
            var bytes = SampleApp().tar { $0.add("Game.app/link", type: "2", link: "Info.plist") }
            for _ in 0..<30 {
                bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
            }
            let source = try place.write(bytes, to: "a.tar")
            do throws(AssetsError) { _ = try place.stage(source) } catch {
                #expect([.archiveInvalid, .bundleInvalid].contains(error.code), "seed \(seed): \(error)")
                #expect(!place.exists(place.staged))
            }
            #expect(try place.names(place.folder) == ["a.tar", "device"])
            #expect(try place.names(place.root) == ["Applications"])
        }
    }

    // MARK: Limits

    @Test("A bomb is stopped at the expansion that is admitted")
    func bomb() async throws {
        try await inPlace { place in
            var tar = TarFile()
            tar.add("Game.app/zeros", type: "0", statedSize: 1 << 32)
            let bytes = zstandard(tar.bytes, zeros: 1 << 32)
            var limits = StagingLimits()
            limits.expansionFloor = 1 << 20
            limits.expansionMax = 10
            let error = try place.refusal(place.write(bytes, to: "bomb.tar.zst"), limits: limits)
            #expect(error.reason.contains("unpacks to more bytes"))
        }
    }

    @Test("A file that is a hole only may not be larger than all bytes admitted")
    func hugeHole() async throws {
        try await inPlace { place in
            var tar = TarFile()
            // An old GNU sparse file: map of one piece at the end, real size of 1 PiB in the header.
            tar.add("Game.app/hole", [UInt8](repeating: 1, count: 512), type: "S")
            var bytes = tar.bytes
            func octal(_ number: Int64) -> [UInt8] {
                let digits = Array(String(number, radix: 8).utf8)
                return [UInt8](repeating: 0x30, count: 11 - min(11, digits.count)) + digits.prefix(11) + [0]
            }
            let size: Int64 = 8 << 30 - 512
            for (index, byte) in (Array("ustar  \0".utf8)).enumerated() { bytes[257 + index] = byte }
            for (index, byte) in (octal(size) + octal(512)).enumerated() { bytes[386 + index] = byte }
            for (index, byte) in octal(size + 512).enumerated() { bytes[483 + index] = byte }
            for index in 148..<156 { bytes[index] = 0x20 }
            let sum = bytes[..<512].reduce(0) { $0 + Int($1) }
            for (index, byte) in (Array(String(sum, radix: 8).utf8) + [0]).enumerated() { bytes[148 + index] = byte }
            var limits = StagingLimits()
            limits.bytesMax = 1 << 30
            let error = try place.refusal(
                place.write(bytes + [UInt8](repeating: 0, count: 1024), to: "a.tar"), limits: limits)
            #expect(error.reason.contains("holds more than"), "\(error)")
        }
    }

    @Test("More bytes, entries and folders than admitted are refused", arguments: ["bytes", "entries", "folders"])
    func limits(what: String) async throws {
        try await inPlace { place in
            var limits = StagingLimits()
            let tar = SampleApp().tar { tar in
                switch what {
                case "bytes": tar.add("Game.app/data", [UInt8](repeating: 1, count: 20_000))
                case "entries": for index in 0..<60 { tar.add("Game.app/file\(index)") }
                default: tar.add("Game.app/" + String(repeating: "a/", count: 55) + "b")
                }
            }
            limits.bytesMax = 15_000
            limits.entriesMax = 50
            limits.expansionFloor = 1 << 20
            let error = try place.refusal(place.write(tar, to: "a.tar"), limits: limits)
            #expect(error.reason.contains("more"), "\(error)")
        }
    }

    @Test("A stated size of an archive is not believed")
    func statedSize() async throws {
        try await inPlace { place in
            var tar = TarFile()
            tar.add("Game.app/data", [1, 2, 3], statedSize: 8 << 30)
            let error = try place.refusal(place.write(tar.ended, to: "a.tar"))
            #expect(error.code == .archiveInvalid)
            var zip = ZipFile()
            zip.add("Game.app/data", [1, 2, 3], statedSize: 1 << 30)
            let zipError = try place.refusal(place.write(zip.ended, to: "a.zip"))
            #expect(zipError.code == .archiveInvalid)
        }
    }
}

/// A small generator whose seed makes a failure repeatable.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
