// The move of a finished file, on the real disk.
import AssetsModel
import AssetsOS
import Foundation
import Glibc
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

    private func move(_ name: String, to target: String, mayBeDone: Bool = false) throws -> FileMove {
        let partial = "Transfers/\(name).partial"
        if !mayBeDone { try files.replace(partial, with: Array(name.utf8), mode: 0o600) }
        let inode = try #require(try files.status(mayBeDone ? target : partial)).inode
        return FileMove(
            partial: partial, intent: FinishIntent(target: target, inode: inode, length: Int64(name.utf8.count)),
            isReadOnly: false, mayBeDone: mayBeDone)
    }

    @Test(
        "A file is moved to a folder of its own and to the folder it lies in, again without harm",
        arguments: ["Containers/Group/g/Library/Caches/.BackgroundAssets/u/film.mp4", "Transfers/u.archive"])
    func moves(target: String) throws {
        var one = try move("u", to: target)
        for _ in 1...2 {
            #expect(moveIntoPlace(files, [one]) == [nil])
            #expect(try files.status(target)?.inode == one.intent.inode)
            #expect(try files.status(one.partial) == nil)
            one.mayBeDone = true
        }
    }

    @Test("Of files that are moved together, those that cannot be moved do not keep the others")
    func together() throws {
        let folder = "Containers/Group/g/Library/Caches/.BackgroundAssets/u"
        var moves = try ["a", "b", "c", "d"].map { try move($0, to: "\(folder)/\($0)") }
        // Nothing of that name; a folder is in the way; and another folder altogether.
        try files.remove(moves[1].partial)
        try files.makeDirectory("\(folder)/c/full")
        moves.append(try move("e", to: "Transfers/e.archive"))
        let failures = moveIntoPlace(files, moves)
        #expect(failures.map { $0?.number } == [nil, ENOENT, EISDIR, nil, nil])
        for index in [0, 3, 4] {
            #expect(try files.status(moves[index].intent.target)?.inode == moves[index].intent.inode)
        }
        #expect(try files.list("Transfers") == ["c.partial", "e.archive"])
    }
}
