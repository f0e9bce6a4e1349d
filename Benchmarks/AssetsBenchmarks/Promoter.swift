// Downloads that are made more urgent while they run: ours, and what comes close to it elsewhere.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// Somebody who fetches a file and can be told meanwhile that now somebody waits for it.
protocol Promoter: AnyObject {
    var name: String { get }
    func begin(_ file: WantedFile) throws
    /// Makes it urgent; nil where it has ended before.
    func promote(_ file: WantedFile) throws -> Promotion?
    /// Makes it what it was before, so that it can be promoted again.
    func demote(_ file: WantedFile) throws
    /// The file that its bytes come to.
    func partial(of file: WantedFile) -> String
    func finish(_ file: WantedFile, within limit: Duration) throws
    /// The finished file; nil where it was given up.
    func result(of file: WantedFile) -> String?
    func clear(_ file: WantedFile)
}

struct Promotion {
    /// When it was asked for, and when it was done.
    var start: Duration
    var end: Duration
    /// Bytes that were there while nothing came; nil where nobody stopped it for that.
    var length: Int64?
}

/// The service: a background download that the app starts in the foreground. When the app's connection closes, it goes on
/// in the background.
final class ServicePromoter: Promoter {
    private static let limit = Duration.seconds(20)
    private static let look: useconds_t = 500

    let name = "us"
    private let device: PrivateDevice
    private let resumer: ServiceResumer
    private var holder: ServiceConnection?
    private var lastRow: Int64 = 0

    init(device: PrivateDevice, resumer: ServiceResumer) {
        self.device = device
        self.resumer = resumer
    }

    func begin(_ file: WantedFile) throws { try resumer.begin([file]) }

    func promote(_ file: WantedFile) throws -> Promotion? {
        let connection = try WireControl.declared(device)
        let start = MonotonicClock.now
        do {
            _ = try connection.call(ManagerInterface.StartForeground.self, .init(download: resumer.download(of: file)))
        } catch {
            connection.close()
            // Whoever has the whole file already is not promoted.
            guard resumer.length(of: file) == 0 else { throw error }
            return nil
        }
        let end = MonotonicClock.now
        holder = connection
        return Promotion(start: start, end: end)
    }

    func demote(_ file: WantedFile) throws {
        holder?.close()
        holder = nil
        let deadline = Deadline(in: Self.limit)
        while try !hasRow("download-demoted"), resumer.result(of: file) == nil {
            guard !deadline.hasPassed else { throw BenchError("\(file.name) stays in the foreground") }
            usleep(Self.look)
        }
    }

    /// How many promotions the service has carried out.
    func promotions() throws -> Int { try device.journal(after: 0).count { $0.event == "download-promoted" } }

    /// Whether there is such a row after those that were looked through.
    private func hasRow(_ event: String) throws -> Bool {
        let rows = try device.journal(after: lastRow)
        lastRow = rows.last?.number ?? lastRow
        return rows.contains { $0.event == event }
    }

    func partial(of file: WantedFile) -> String { resumer.partial(of: file) }

    func finish(_ file: WantedFile, within limit: Duration) throws {
        holder?.close()
        holder = nil
        try resumer.finish(within: limit)
    }

    func result(of file: WantedFile) -> String? { resumer.result(of: file) }
    func clear(_ file: WantedFile) { resumer.clear([file]) }
}

/// aria2, which has no classes: it can stop a download and go on.
final class Aria2Promoter: Promoter {
    private static let limit = Duration.seconds(20)

    let name = "aria2 pause, unpause"
    private let aria2: Aria2
    private var numbers: [String: String] = [:]

    init(_ aria2: Aria2) { self.aria2 = aria2 }

    func begin(_ file: WantedFile) throws { numbers[file.name] = try aria2.add(file.url, as: file.name) }

    func promote(_ file: WantedFile) throws -> Promotion? {
        guard let number = numbers[file.name], try aria2.status(of: number) == "active" else { return nil }
        let start = MonotonicClock.now
        try aria2.tell("pause", number)
        try aria2.wait(until: "paused", number, within: Self.limit)
        let length = Int64((try? Folder.size(partial(of: file))) ?? 0)
        try aria2.tell("unpause", number)
        return Promotion(start: start, end: MonotonicClock.now, length: length)
    }

    /// It is what it was.
    func demote(_ file: WantedFile) {}

    func partial(of file: WantedFile) -> String { aria2.path(of: file.name) }

    func finish(_ file: WantedFile, within limit: Duration) throws {
        guard let number = numbers[file.name] else { return }
        try aria2.wait(until: "complete", number, within: limit)
    }

    func result(of file: WantedFile) -> String? { partial(of: file) }

    func clear(_ file: WantedFile) {
        unlink(partial(of: file))
        unlink(partial(of: file) + ".aria2")
    }
}
