// An attempt for the tests of its rules, and short words for what servers send.
import AssetsModel

let etag = "\"v1\""
let lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
let date = "Sun, 06 Nov 1994 08:59:37 GMT"
let here = "boot:1"
let assetURL = "https://a.example/file"

func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> TransportHead {
    TransportHead(status: status, headers: fields.map { HeaderField(name: $0.key, value: $0.value) })
}

func note(
    etag: String? = etag, lastModified: String? = nil, total: Int64 = 100, synced: Int64 = 40, epoch: String = here,
    digest number: UInt8? = nil
) -> ResumePoint {
    ResumePoint(
        etag: etag, lastModified: lastModified, total: total, syncedOffset: synced, storageEpoch: epoch,
        digest: number.map { digest($0) })
}

/// A SHA-256 that consists of one byte.
func digest(_ byte: UInt8, _ algorithm: ContentDigest.Algorithm = .sha256) -> ContentDigest {
    let bytes = [UInt8](repeating: byte, count: algorithm.byteCount)
    guard let digest = ContentDigest(algorithm, bytes) else { preconditionFailure("a digest of its own length") }
    return digest
}

func digestField(_ byte: UInt8, _ algorithm: ContentDigest.Algorithm = .sha256) -> String {
    "\(algorithm.rawValue)=:\(Base64.encode(digest(byte, algorithm).bytes)):"
}

/// A plan for a file of which `length` bytes are there. Beside them stands what the row says, or another tag, since before the
/// device was started.
func makePlan(
    length: Int64 = 0, otherTag: String? = nil, resume: ResumePoint? = nil,
    _ change: (inout TransferPlan.Order) -> Void = { _ in }
) -> TransferPlan {
    var order = TransferPlan.Order(url: assetURL)
    order.resume = resume
    change(&order)
    let beside = resume.map { row in
        var point = row
        point.storageEpoch = "boot:0"
        point.total = max(0, row.total)
        if let otherTag { point.etag = otherTag }
        return PartialNote(point)
    }
    return TransferPlan(order, partial: .init(length: length, note: beside, storageEpoch: here))
}

extension TransferPlan.Action {
    var request: TransferPlan.Hop? {
        if case .request(let hop) = self { return hop }
        return nil
    }
    var refusal: (failure: DownloadFailure, reason: Reason)? {
        if case .refuse(let failure, let reason) = self { return (failure, reason) }
        return nil
    }
    var interruption: Interruption? {
        if case .interrupt(let interruption) = self { return interruption }
        return nil
    }
    var start: TransferPlan.Start? {
        if case .take(let start) = self { return start }
        return nil
    }
}

extension TransferPlan.Hop {
    /// The first byte that is asked for.
    var from: Int64 { value("Range").flatMap { Int64($0.dropFirst(6).dropLast()) } ?? 0 }
    func value(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}
