// Between the network and the disk: bytes are gathered here and appended to a file by another thread, so that neither
// waits for the other.
internal import AssetsOS
internal import Glibc

/// Bytes on their way to a file, one piece being gathered while the one before is written, and hashed where somebody wants
/// to know what the file comes to.
///
/// Used on the engine's loop only. While `isWriting` nobody else changes the file.
final class WriteBehind {
    /// Bytes of a piece: enough for a disk to be quick, and two of them are all that a transfer has in memory.
    static let pieceBytes = 512 << 10
    /// Bytes that are taken before the server has to wait for the disk.
    static let bytesMax = Int64(2 * pieceBytes)
    /// Pieces end where a page of the file does: whole pages can go past the page cache.
    private static let pageBytes: Int64 = 4096

    private let file: any AppendableFile
    /// Bytes that a piece is made for: all there will be, where that is less than a piece; 0 when nobody knows.
    private let pieceRoom: Int
    private let follower: DigestFollower?
    /// Appends the first bytes of a piece on the disk's executor and then calls `written`.
    private let append: (any AppendableFile, Piece, Int) -> Void
    private var gathered = Piece()
    /// The piece that others have, or the one that they gave back.
    private var lent: Piece?
    /// Who has it: the disk, the hash, or both.
    private var holders = 0
    /// Bytes of it that belong to the file now.
    private var lentCount = 0
    private var whenDrained: (() -> Void)?

    private(set) var isWriting = false
    /// Bytes in the file, of all writes that are done.
    private(set) var length: Int64
    /// Whether a write was begun since this was last set to false.
    var wasBegun = false

    /// - Parameter expected: Bytes to come; 0 when nobody knows.
    init(
        _ file: any AppendableFile, expecting expected: Int64, follower: DigestFollower?,
        append: @escaping (any AppendableFile, Piece, Int) -> Void
    ) {
        self.file = file
        pieceRoom = Int(min(expected, Int64(Self.pieceBytes)))
        self.follower = follower
        self.append = append
        length = file.length
    }

    /// True when no more should come until a piece is back.
    var isFull: Bool { holders > 0 && gathered.count >= Self.pieceBytes }
    var isEmpty: Bool { holders == 0 && gathered.count == 0 }

    /// Bytes that are in no file yet, or that the hash still reads.
    var unwritten: Int64 { Int64(gathered.count + (holders > 0 ? lentCount : 0)) }

    /// Gives back the memory of pieces that hold nothing.
    func trim() {
        guard isEmpty else { return }
        gathered = Piece()
        lent = nil
    }

    func store(_ bytes: UnsafeRawBufferPointer) {
        gathered.reserve(pieceRoom)
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
        holders -= 1
        length = file.length
        guard failure == nil else { return }
        goOn()
    }

    /// The hash has given its piece back.
    func hashed() {
        holders -= 1
        goOn()
    }

    /// Lends the piece that is being written to the hash as well, where that has just come so far.
    func lendToFollower() {
        guard isWriting, holders == 1, let follower, let lent else { return }
        if follower.take(lent, count: lentCount, at: length) { holders += 1 }
    }

    private func goOn() {
        guard holders == 0 else { return }
        if let body = whenDrained, gathered.count == 0 {
            whenDrained = nil
            return body()
        }
        if whenDrained != nil { begin(whole: true) } else if gathered.count >= Self.pieceBytes { begin(whole: false) }
    }

    private func begin(whole: Bool) {
        guard holders == 0, gathered.count > 0 else { return }
        let piece = gathered
        let end = length + Int64(piece.count)
        lentCount = whole ? piece.count : Int(end - end % Self.pageBytes - length)
        gathered = lent ?? Piece()
        lent = piece
        gathered.clear()
        gathered.add(piece.bytes(from: lentCount))
        isWriting = true
        wasBegun = true
        holders = 1
        lendToFollower()
        append(file, piece, lentCount)
    }
}

/// Memory for what is gathered, at addresses that a disk can read directly.
///
/// Unchecked: it is written to on one executor and lent to others, who only read it, until `WriteBehind.written` and, where
/// the hash had it too, `WriteBehind.hashed`.
final class Piece: @unchecked Sendable {
    private static let pageBytes = 4096

    private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private(set) var count = 0

    deinit { memory.deallocate() }

    func clear() { count = 0 }

    /// Makes room for so many bytes at once, so that none of them is copied again; what holds nothing yet costs nothing.
    func reserve(_ bytes: Int) {
        if bytes > memory.count { grow(to: bytes) }
    }

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
