// The move of a finished file, on the real disk.
import AssetsModel
import AssetsOS
import Foundation
import Testing

@testable import AssetsService

@Suite("The move of a finished file")
final class MoveIntoPlaceTests {
    private let root: URL
    private let files: DeviceTree

    init() throws {
        root = FileManager.default.temporaryDirectory.appending(path: "move-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        files = try DeviceTree(root: root.path)
        try files.makeDirectory("Transfers")
    }

    deinit { try? FileManager.default.removeItem(at: root) }

    @Test(
        "A file is moved to a folder of its own and to the folder it lies in, again without harm",
        arguments: ["Containers/Group/g/Library/Caches/.BackgroundAssets/u/film.mp4", "Transfers/u.archive"])
    func moves(target: String) throws {
        let partial = "Transfers/u.partial"
        try files.replace(partial, with: Array("film".utf8), mode: 0o600)
        let inode = try #require(try files.status(partial)).inode
        let intent = FinishIntent(target: target, inode: inode, length: 4)
        for _ in 1...2 {
            try moveIntoPlace(files, partial: partial, intent: intent, mark: "u")
            #expect(try files.status(target)?.inode == inode)
            #expect(try files.status(partial) == nil)
        }
    }
}
