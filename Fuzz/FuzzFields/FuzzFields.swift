// Content-Range, validators, dates and lengths in the answer to a request for the rest: a part is taken only where all of
// them agree with what was noted.
import AssetsModel

private let names = [
    "Content-Range", "ETag", "Last-Modified", "Date", "Content-Length", "Content-Type", "Content-Encoding",
    "Retry-After", "Accept-Ranges", "Transfer-Encoding", "Repr-Digest", "Content-Digest",
]
private let statuses = [200, 206, 416, 302, 503]
private let note = ResumePoint(
    etag: "\"v1\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT", total: 100, syncedOffset: 60, storageEpoch: "e")

/// The first byte picks the status; each line begins with a byte that picks its field.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: data, count: count)
    guard let first = bytes.first else { return 0 }
    let lines = bytes.dropFirst().split(separator: UInt8(ascii: "\n"), maxSplits: 32)
    let fields = lines.compactMap { line in
        line.first.map { pick in
            HeaderField(
                name: names[Int(pick) % names.count], value: String(decoding: line.dropFirst(), as: UTF8.self))
        }
    }
    let head = TransportHead(status: statuses[Int(first) % statuses.count], headers: fields)
    check(head)
    if let range = head.value(of: "Content-Range").flatMap(ContentRange.init), let part = range.bytes {
        precondition(part.lowerBound >= 0 && part.upperBound < range.total ?? .max)
    }
    _ = (Validator.strongTag(in: head), Validator.strongDate(in: head))
    if let pause = RetryAfter.delay(in: head) { precondition(pause >= .zero && pause <= .seconds(3600)) }
    return 0
}

private func check(_ head: TransportHead) {
    var order = TransferPlan.Order(url: "https://a.example/file")
    order.resume = note
    var plan = TransferPlan(order, partial: .init(length: 60, note: PartialNote(note), storageEpoch: "e"))
    _ = plan.begin()
    guard case .take(let start) = plan.head(head) else { return }
    guard start.offset > 0 else { return }
    precondition(head.status == 206 && start.offset == 60 && start.total == 100 && start.end <= 100)
    precondition(head.value(of: "ETag") == "\"v1\"", "two versions are spliced")
}
