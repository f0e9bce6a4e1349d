// Digest fields and what they are written in: what is read is the right number of bytes, and is written as it was read.
import AssetsModel

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
    let fields = ["Repr-Digest", "Content-Digest", "x-amz-checksum-sha256"].map { HeaderField(name: $0, value: text) }
    let head = TransportHead(status: 200, headers: fields)
    for digest in [DigestFields.ofWhole(head), DigestFields.ofContent(head), DigestFields.ofObject(head)] {
        guard let digest else { continue }
        precondition(digest.bytes.count == digest.algorithm.byteCount)
        precondition(ContentDigest(digest.text) == digest)
    }
    // One text for each value.
    if let bytes = Base64.decode(text) { precondition(Base64.encode(bytes) == text) }
    if let bytes = Hexadecimal.decode(text) { precondition(Hexadecimal.decode(Hexadecimal.encode(bytes)) == bytes) }
    if let digest = ContentDigest(text) { precondition(ContentDigest(digest.text) == digest) }
    return 0
}
