// Between the network and the disk: bytes are gathered here and appended to a file by another thread, so that neither
// waits for the other.
internal import AssetsOS
internal import Glibc

/// Bytes on their way to a file, one piece being gathered while the one before is written.
///
/// Used on the engine's loop only. While `isWriting` nobody else touches the file.
final class WriteBehind {
    /// Bytes of a piece: enough for a disk to be quick, and two of them are all that a transfer has in memory.
    private static let pieceBytes = 512 << 10
    /// Pieces end where a page of the file does: whole pages can go past the page cache.
    private static let pageBytes: Int64 = 4096

    private let file: any AppendableFile
    /// Appends the first bytes of a piece on the disk's executor and then calls `written`.
    private let append: (any AppendableFile, Piece, Int) -> Void
    private var gathered = Piece()
    private var spare: Piece?
    private var whenDrained: (() -> Void)?

    private(set) var isWriting = false
    /// Bytes in the file, of all writes that are done.
    private(set) var length: Int64
    /// Whether a write was begun since this was last set to false.
    var wasBegun = false

    init(_ file: any AppendableFile, append: @escaping (any AppendableFile, Piece, Int) -> Void) {
        self.file = file
        self.append = append
        length = file.length
    }

    /// True when no more should come until a write is done.
    var isFull: Bool { isWriting && gathered.count >= Self.pieceBytes }
    var isEmpty: Bool { !isWriting && gathered.count == 0 }

    func store(_ bytes: UnsafeRawBufferPointer) {
        gathered.add(bytes)
        if gathered.count >= Self.pieceBytes { begin(whole: false) }
    }

    /// Writes what was gathered, however little.
    func flush() { begin(whole: true) }

    /// Writes all there is, and calls `body` once nothing is left; in place of an earlier one.
    func drain(_ body: @escaping () -> Void) {
        whenDrained = body
        goOn()
    }

    /// A write is done. After a failure nothing more is written; `length` tells what is there.
    func written(_ failure: SystemCallError?) {
        isWriting = false
        length = file.length
        guard failure == nil else { return }
        goOn()
    }

    private func goOn() {
        guard !isWriting else { return }
        if let body = whenDrained, gathered.count == 0 {
            whenDrained = nil
            return body()
        }
        if whenDrained != nil { begin(whole: true) } else if gathered.count >= Self.pieceBytes { begin(whole: false) }
    }

    private func begin(whole: Bool) {
        guard !isWriting, gathered.count > 0 else { return }
        let piece = gathered
        let end = length + Int64(piece.count)
        let count = whole ? piece.count : Int(end - end % Self.pageBytes - length)
        gathered = spare ?? Piece()
        spare = piece
        gathered.clear()
        gathered.add(piece.bytes(from: count))
        isWriting = true
        wasBegun = true
        append(file, piece, count)
    }
}

/// Memory that grows to what is put into it, at addresses that a disk can read directly.
///
/// Unchecked: it is written to on one executor and lent to another until `WriteBehind.written`.
final class Piece: @unchecked Sendable {
    private static let pageBytes = 4096

    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private(set) var count = 0

    deinit { memory.deallocate() }

    func clear() { count = 0 }

    func add(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        if count + bytes.count > memory.count { grow(to: count + bytes.count) }
        UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: bytes)
        count += bytes.count
    }

    func bytes(upTo end: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<end]) }
    func bytes(from start: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<count]) }

    private func grow(to needed: Int) {
        let pages = (max(needed, memory.count * 2) + Self.pageBytes - 1) / Self.pageBytes
        let larger = UnsafeMutableRawBufferPointer.allocate(
            byteCount: pages * Self.pageBytes, alignment: Self.pageBytes)
        larger.copyMemory(from: bytes(upTo: count))
        memory.deallocate()
        memory = larger
    }
}
