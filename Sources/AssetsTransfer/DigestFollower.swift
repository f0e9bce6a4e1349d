// Hashes a file while it grows: pieces as they are received, and from the disk what was there before.
internal import AssetsModel
internal import AssetsOS

/// How far the hash of one file has come.
///
/// Used on the engine's loop only; the work itself is done elsewhere, one job at a time. A piece that begins where the hash
/// ends is taken while it is in memory. Otherwise (bytes of an earlier attempt) the file is read behind the writer until
/// the hash has caught up, so that receiving need not wait for it.
final class DigestFollower {
    /// What one job hashes.
    enum Work {
        /// The first bytes of a piece.
        case piece(Piece, count: Int)
        /// So many bytes of the file from here on.
        case file(any AppendableFile, from: Int64, count: Int64)
    }

    let check: TransferPlan.DigestCheck
    private let file: any AppendableFile
    private let hasher: ContentHasher
    private let begin: (ContentHasher, Work) -> Void
    /// The file up to here is in the hash.
    private(set) var end: Int64
    private var endOfWork: Int64?
    private var isPieceLent = false

    init(
        _ check: TransferPlan.DigestCheck, of file: any AppendableFile,
        begin: @escaping (ContentHasher, Work) -> Void
    ) {
        self.check = check
        self.file = file
        self.begin = begin
        hasher = ContentHasher(check.expected.algorithm)
        end = check.from
    }

    /// Takes a piece that lies at `offset` of the file, if that is where the hash ends and nothing else is under way.
    func take(_ piece: Piece, count: Int, at offset: Int64) -> Bool {
        guard endOfWork == nil, offset == end else { return false }
        isPieceLent = true
        start(.piece(piece, count: count), end: end + Int64(count))
        return true
    }

    /// Reads what is missing of the first `length` bytes of the file.
    func follow(upTo length: Int64) {
        guard endOfWork == nil, end < length else { return }
        let count = min(length - end, PolicyNumbers.digestReadMax)
        start(.file(file, from: end, count: count), end: end + count)
    }

    private func start(_ work: Work, end: Int64) {
        endOfWork = end
        begin(hasher, work)
    }

    /// A job is done; true when it had a piece, which is free again.
    func done() -> Bool {
        defer { isPieceLent = false }
        end = endOfWork ?? end
        endOfWork = nil
        return isPieceLent
    }

    /// True when more than a moment's work is left.
    func isFarBehind(_ length: Int64) -> Bool { length - end > PolicyNumbers.digestReadMax }

    /// What `length` bytes come to; nil while some are missing. The last call that matters.
    func digest(of length: Int64) -> ContentDigest? {
        endOfWork == nil && end == length ? hasher.digest() : nil
    }
}
