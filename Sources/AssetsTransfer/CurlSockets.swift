// The sockets of all connections, also of those that wait for their next request: libcurl names only those in use.
internal import AssetsModel
internal import CCurl
internal import Glibc

/// Opens and closes sockets for libcurl, and can break their connections.
///
/// Used on the transport's loop only, which outlives its connections.
final class CurlSockets {
    /// Each with the number of its socket: some that libcurl gives up while it connects it closes by itself, and then the
    /// descriptor may be somebody else's.
    private var descriptors: [Int32: ino_t] = [:]

    /// Has the sockets of a request's connections opened here.
    func watch(_ setup: inout CurlSetup) {
        setup.note(
            shim_curl_set_sockets(
                setup.easy,
                { user, _, address in
                    guard let user, let address = address?.pointee else { return CURL_SOCKET_BAD }
                    return Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue().open(address)
                },
                { user, descriptor in
                    guard let user else { return Glibc.close(descriptor) }
                    return Unmanaged<CurlSockets>.fromOpaque(user).takeUnretainedValue().close(descriptor)
                }, Unmanaged.passUnretained(self).toOpaque()))
    }

    private func open(_ address: curl_sockaddr) -> Int32 {
        let kind = address.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.family, kind, address.`protocol`)
        if descriptor >= 0 { descriptors[descriptor] = Self.number(of: descriptor) }
        return descriptor
    }

    private func close(_ descriptor: Int32) -> Int32 {
        descriptors[descriptor] = nil
        return Glibc.close(descriptor)
    }

    /// Breaks connections whose own end has another address than these; libcurl finds them closed at once, where it
    /// would else wait for answers that cannot come.
    func shutDown(keeping addresses: [String]) {
        let kept = Set(addresses.compactMap { IPAddress($0) })
        descriptors = descriptors.filter { $0.value == Self.number(of: $0.key) }
        for descriptor in descriptors.keys {
            guard let own = Self.ownAddress(descriptor), !kept.contains(own) else { continue }
            shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    /// The kernel's number of a socket; nil where the descriptor is none, or closed.
    private static func number(of descriptor: Int32) -> ino_t? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        return status.st_ino
    }

    /// nil before it has one.
    private static func ownAddress(_ descriptor: Int32) -> IPAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let bytes: [UInt8]? = withUnsafeMutableBytes(of: &storage) { bytes in
            guard let base = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                getsockname(descriptor, base, &length) == 0
            else { return nil }
            switch Int32(base.pointee.sa_family) {
            case AF_INET: return withUnsafeBytes(of: bytes.load(as: sockaddr_in.self).sin_addr) { [UInt8]($0) }
            case AF_INET6: return withUnsafeBytes(of: bytes.load(as: sockaddr_in6.self).sin6_addr) { [UInt8]($0) }
            default: return nil
            }
        }
        guard let bytes, bytes.contains(where: { $0 != 0 }) else { return nil }
        return IPAddress(bytes: bytes)
    }
}
