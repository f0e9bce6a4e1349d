// A partial file of which nothing is there yet: what of it counts as synced.
import AssetsModel
import AssetsOS
import Testing

@testable import AssetsTransfer

@Suite("Files that are made by their first bytes")
struct FreshFileTests {
    private static let path = "file.partial"

    /// While a transfer's class changes, one thread may sync what another one still appends to.
    @Test("What is appended while a sync is under way is not counted as synced")
    func appendedMeanwhile() throws {
        let directory = try TestDirectory()
        let syncing = Guarded<FreshFile?>(nil)
        let tree = FaultyTree(try DeviceTree(root: directory.path)) {
            let file = syncing.withLock { file in
                defer { file = nil }
                return file
            }
            #expect(throws: Never.self) { try file.map { try append(4, to: $0) } }
        }
        let file = FreshFile(Self.path, in: tree, marks: [:])
        try append(3, to: file)
        #expect(!file.isSynced)
        syncing.withLock { $0 = file }
        try file.sync()
        #expect(!file.isSynced && file.length == 7)
        try file.sync()
        #expect(file.isSynced)
        try file.truncate(to: 5)
        #expect(!file.isSynced)
    }

    @Test("A file that came whole is synced once, and again only after it was changed")
    func whole() throws {
        let directory = try TestDirectory()
        let calls = DiskCalls()
        let tree = FaultyTree(try DeviceTree(root: directory.path), calls: calls)
        let file = FreshFile(Self.path, in: tree, marks: [:])
        file.total = 3
        try append(3, to: file)
        #expect(file.isWhole)
        try file.syncWhole()
        try file.sync()
        #expect(file.isSynced && calls.all == ["append", "sync"])
    }
}

private func append(_ count: Int, to file: FreshFile) throws {
    try Array(repeating: UInt8(7), count: count).withUnsafeBytes { try file.append($0) }
}
