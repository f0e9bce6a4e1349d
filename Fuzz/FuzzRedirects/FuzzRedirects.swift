// Location fields and URLs: what comes out is an http or https URL that reads as itself, and no host that was not allowed.
import AssetsModel

private let base = try? WebAddress("https://a.example/packs/one/file.zip?x=1")

/// One input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: count), as: UTF8.self)
    if let address = try? WebAddress(text) { check(address) }
    if let address = try? base?.resolving(text) { check(address) }
    var order = TransferPlan.Order(url: "https://a.example/packs/one/file.zip")
    order.admits = { $0 == "a.example" || $0 == "b.example" }
    var plan = TransferPlan(order, partial: .init(length: 0, note: nil, storageEpoch: ""))
    _ = plan.begin()
    let head = TransportHead(status: 302, headers: [HeaderField(name: "Location", value: text)])
    if case .request(let hop) = plan.head(head) {
        guard let target = try? WebAddress(hop.url) else { preconditionFailure("a request to \(hop.url)") }
        precondition(order.admits(target.host) && target.scheme == .https)
    }
    return 0
}

private func check(_ address: WebAddress) {
    precondition(address.path.hasPrefix("/") && !address.host.isEmpty && (1...65535).contains(address.port))
    precondition(address.url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a URL of plain characters")
    // Who reads the same text again comes to the same place.
    guard let again = try? WebAddress(address.url) else { preconditionFailure("\(address.url) is not read again") }
    precondition(again == address, "\(address.url) is read as \(again.url)")
    _ = (CaptivePortal.kind(of: address), address.folder, address.target)
}
