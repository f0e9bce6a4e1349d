// Response heads, line by line as libcurl hands them over: whatever a server sends, the reader ends with a head or not.
import AssetsModel

@testable import AssetsTransfer

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    var rest = UnsafeRawBufferPointer(start: data, count: count)
    var reader = ResponseHeadReader()
    var heads = 0
    while !rest.isEmpty {
        let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.count
        let line = UnsafeRawBufferPointer(rebasing: rest[..<end])
        rest = UnsafeRawBufferPointer(rebasing: rest[end...])
        switch reader.line(line) {
        case .more: continue
        case .malformed: return 0
        case .head(let head):
            heads += 1
            precondition(heads == 1, "a response has one final head")
            precondition(head.status >= 200 && head.status <= 999 && head.headers.count <= ResponseHeadReader.linesMax)
            use(head)
        }
    }
    return 0
}

/// All that is ever read of a head.
private func use(_ head: TransportHead) {
    _ = (Validator.strongTag(in: head), Validator.strongDate(in: head), RetryAfter.delay(in: head))
    _ = (ContentFields.length(head), ContentFields.mediaType(head), ContentFields.coding(head))
    _ = (DigestFields.ofWhole(head), DigestFields.ofContent(head), DigestFields.ofObject(head))
    let partial = TransferPlan.Partial(length: 0, note: nil, storageEpoch: "")
    var plan = TransferPlan(.init(url: "https://a.example/f.zip"), partial: partial)
    _ = plan.begin()
    _ = plan.head(head)
}
