// What the tests of the store share: a loop and a directory for each, and records to fill in.
import AssetsModel
import AssetsOS
import Glibc
import Testing

@testable import AssetsStore

/// A fresh directory and a loop; both go when the test is over.
struct Place {
    let directory: String
    let loop: EventLoop

    var path: String { directory + "/device.sqlite" }

    func open() async throws -> Store { try await Store(path: path, on: loop) }

    /// Copies database and log as they are now, as a power cut would leave them; returns the copy's path.
    func copy(to name: String) throws -> String {
        let copy = "\(directory)/\(name)"
        for suffix in ["", "-wal"] {
            guard let bytes = try? contents(path + suffix) else { continue }
            try write(bytes, to: copy + suffix)
        }
        return copy
    }

    func contents(_ path: String) throws -> [UInt8] {
        let descriptor = Glibc.open(path, O_RDONLY)
        guard descriptor >= 0 else { throw SystemCallError(call: "open", number: errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count <= 0 { return bytes }
            bytes += buffer[..<count]
        }
    }

    func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard descriptor >= 0 else { throw SystemCallError(call: "open", number: errno) }
        defer { close(descriptor) }
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw SystemCallError(call: "write", number: errno) }
            offset += count
        }
    }

    func exists(_ name: String) -> Bool { access("\(directory)/\(name)", F_OK) == 0 }
}

/// Runs `body` in a fresh place.
func inPlace(_ body: (Place) async throws -> Void) async throws {
    var template = Array(((getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/store.XXXXXX").utf8CString)
    try #require(mkdtemp(&template) != nil)
    let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let place = Place(directory: directory, loop: try EventLoop.start(name: "store"))
    defer {
        place.loop.stop()
        if let folder = opendir(directory) {
            var names: [String] = []
            while let entry = readdir(folder) {
                names.append(
                    withUnsafePointer(to: &entry.pointee.d_name) {
                        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                    })
            }
            closedir(folder)
            for name in names where name != "." && name != ".." { unlink("\(directory)/\(name)") }
        }
        rmdir(directory)
    }
    try await body(place)
}

/// A download of `app` with as little said as possible.
func makeDownload(
    _ identifier: String, unique: String? = nil, app: String = "org.example.app", essential: Bool = false,
    size: Int64 = 0, priority: Int = 0, class transferClass: TransferClass = .background, notBefore: Duration? = nil
) -> DownloadRecord {
    let request = DownloadRequest(
        identifier: identifier, uniqueIdentifier: unique ?? "\(app)/\(identifier)",
        url: "https://example.com/\(identifier)", group: "group.example", isEssential: essential, size: size,
        priority: priority)
    return DownloadRecord(app: app, request: request, transferClass: transferClass, notBefore: notBefore)
}

/// A record with something in every field.
func makeFullDownload(state: DownloadRecord.State = .waiting) -> DownloadRecord {
    let request = DownloadRequest(
        identifier: "Ünïcode \u{0}\"/\\ 🗺️", uniqueIdentifier: "5B0E6A5E-6D5B-4A6C-9E57-4C6F8D7A3C11",
        url: "https://example.com/a?b=c#d", method: "POST",
        headers: [HeaderField(name: "Accept", value: "a/b"), HeaderField(name: "X", value: "\"\\\n é")],
        body: [0, 255, 1, 0], group: "group.example", isEssential: true, size: .max, priority: -7, kind: .manifest,
        sha256: Array(0..<32))
    return DownloadRecord(
        app: "org.example.app", request: request, transferClass: .essential, state: state, attempts: 3,
        retry: RetryHistory(failures: 2, firstFailure: .microseconds(1_700_000_000_123_456)),
        notBefore: .microseconds(1_700_000_005_000_001), reason: .backoff, detail: "waits",
        resume: ResumePoint(
            etag: "\"tag\"", lastModified: "Tue, 07 Jun 2022 10:00:00 GMT", total: 1 << 40, syncedOffset: 1 << 33,
            storageEpoch: "boot/7", digest: ContentDigest(.sha256, Array(32..<64)), isSecondTry: true),
        received: 1 << 34)
}

func makeApp(_ id: String = "org.example.app") -> AppRecord {
    let description = AppDescription(
        bundleIdentifier: id, name: "Ex \"ample\"", version: "1.0", build: "7", bundleFolder: "Example.app",
        executable: "Example", manifestURL: "https://example.com/manifest.json",
        restrictions: DownloadRestrictions(
            downloadAllowance: 1 << 40, essentialDownloadAllowance: nil, allowedDomains: ["*.example.com"]),
        maxInstallSize: 5, essentialMaxInstallSize: 4, extensionIdentifier: id + ".downloader",
        extensionExecutable: "Extensions/D.appex/D", groups: ["group.a", "group.b"], sharedGroups: ["group.a"])
    return AppRecord(
        description: description, buildFolder: "7-abc", source: .store, gate: .shut,
        installedAt: .microseconds(1_700_000_000_000_001), launchedAt: nil,
        ledger: AllowanceLedger(essential: 1, nonEssential: 2))
}

func makeEntry(_ detail: String, app: String = "org.example.app") -> JournalEntry {
    JournalEntry(
        time: .microseconds(1_700_000_000_000_007), event: .downloadQueued, reason: .requested, app: app,
        download: "D", detail: detail)
}
