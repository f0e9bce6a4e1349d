// Messages of the kernel's netlink sockets, taken apart.
internal import CLinux

/// One message of a datagram. Lengths are checked: what does not fit into its datagram is not there.
struct NetlinkMessage {
    /// Bytes of a header, and what headers and attributes are aligned to.
    static let headerBytes = MemoryLayout<nlmsghdr>.size
    private static let alignment = 4

    var type: UInt16
    /// After the header.
    var payload: ArraySlice<UInt8>

    /// All messages of a datagram.
    static func all(in datagram: ArraySlice<UInt8>) -> [NetlinkMessage] {
        var messages: [NetlinkMessage] = []
        var rest = datagram
        while let header: nlmsghdr = rest.value() {
            let length = Int(header.nlmsg_len)
            guard length >= headerBytes, length <= rest.count else { break }
            messages.append(
                NetlinkMessage(type: header.nlmsg_type, payload: rest.prefix(length).dropFirst(headerBytes)))
            rest = rest.dropFirst(aligned(length))
        }
        return messages
    }

    /// The structure that the payload begins with.
    func fixed<Value: BitwiseCopyable>(_: Value.Type = Value.self) -> Value? { payload.value() }

    /// Attributes after a structure of that many bytes; of those with the same type the last.
    func attributes(after bytes: Int) -> [UInt16: ArraySlice<UInt8>] {
        var found: [UInt16: ArraySlice<UInt8>] = [:]
        var rest = payload.dropFirst(Self.aligned(bytes))
        while let header: rtattr = rest.value() {
            let length = Int(header.rta_len)
            guard length >= MemoryLayout<rtattr>.size, length <= rest.count else { break }
            found[header.rta_type] = rest.prefix(length).dropFirst(MemoryLayout<rtattr>.size)
            rest = rest.dropFirst(Self.aligned(length))
        }
        return found
    }

    private static func aligned(_ bytes: Int) -> Int { (bytes + alignment - 1) & ~(alignment - 1) }

    /// The error number in an answer of the type NLMSG_ERROR; 0 is an acknowledgement.
    var errorNumber: Int32? {
        guard Int32(type) == NLMSG_ERROR, let number: Int32 = fixed() else { return nil }
        return -number
    }
}

extension ArraySlice<UInt8> {
    /// The value that the bytes begin with; nil when there are too few.
    func value<Value: BitwiseCopyable>(as _: Value.Type = Value.self) -> Value? {
        guard count >= MemoryLayout<Value>.size else { return nil }
        return withUnsafeBytes { $0.loadUnaligned(as: Value.self) }
    }
}
