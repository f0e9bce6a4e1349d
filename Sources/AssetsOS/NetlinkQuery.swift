// Asking the kernel for its links, addresses and routes.
internal import CLinux
internal import Glibc

/// A socket for questions to the kernel, which answers at once.
struct NetlinkQuery: ~Copyable {
    /// Should the kernel lose an answer nobody waits for ever.
    private static let patience = timeval(tv_sec: 1, tv_usec: 0)
    /// The kernel fills datagrams up to so many bytes.
    private static let datagramBytes = 32 << 10

    private let socket: Descriptor
    private var lastSequence: UInt32 = 0

    init() throws(SystemCallError) {
        let opened = try Self.open(groups: 0, flags: 0)
        let fd = opened.rawValue
        var patience = Self.patience
        try check("setsockopt") {
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        socket = consume opened
    }

    /// A socket of the kernel's routing that is told of these groups.
    static func open(groups: UInt32, flags: Int32) throws(SystemCallError) -> Descriptor {
        let kind = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | flags
        let socket = Descriptor(owning: try check("socket") { Glibc.socket(AF_NETLINK, kind, NETLINK_ROUTE) })
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = groups
        let fd = socket.rawValue
        try check("bind") {
            withUnsafeBytes(of: &address) { bytes in
                bind(
                    fd, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                    socklen_t(MemoryLayout<sockaddr_nl>.size))
            }
        }
        return socket
    }

    /// Every link with its flags.
    mutating func links() throws(SystemCallError) -> [Int32: UInt32] {
        var links: [Int32: UInt32] = [:]
        let question = [UInt8](bytes: rtgenmsg(rtgen_family: UInt8(AF_UNSPEC)))
        try ask(UInt16(RTM_GETLINK), question, flags: UInt16(NLM_F_DUMP)) { message in
            guard message.type == UInt16(RTM_NEWLINK), let link: ifinfomsg = message.fixed() else { return }
            links[link.ifi_index] = link.ifi_flags
        }
        return links
    }

    /// Every address that may be used, with its link.
    mutating func addresses() throws(SystemCallError) -> [(link: Int32, text: String)] {
        var addresses: [(link: Int32, text: String)] = []
        let question = [UInt8](bytes: rtgenmsg(rtgen_family: UInt8(AF_UNSPEC)))
        try ask(UInt16(RTM_GETADDR), question, flags: UInt16(NLM_F_DUMP)) { message in
            guard message.type == UInt16(RTM_NEWADDR), let address: ifaddrmsg = message.fixed(),
                address.ifa_flags & UInt8(IFA_F_TENTATIVE) == 0
            else { return }
            let attributes = message.attributes(after: MemoryLayout<ifaddrmsg>.size)
            // With a peer the first is ours and the second the peer's.
            let bytes = attributes[UInt16(IFA_LOCAL)] ?? attributes[UInt16(IFA_ADDRESS)]
            guard let bytes, let text = Self.text(bytes) else { return }
            addresses.append((Int32(bitPattern: address.ifa_index), text))
        }
        return addresses
    }

    /// The way that packets for an address take: link, gateway and source; nil when there is none.
    ///
    /// The kernel follows its rules and tables for it, as for a connection; nothing is sent.
    mutating func way(to destination: [UInt8]) throws(SystemCallError) -> (link: Int32, text: String)? {
        var question = rtmsg()
        question.rtm_family = UInt8(destination.count == 4 ? AF_INET : AF_INET6)
        question.rtm_dst_len = UInt8(destination.count * 8)
        var attribute = rtattr()
        attribute.rta_len = UInt16(MemoryLayout<rtattr>.size + destination.count)
        attribute.rta_type = UInt16(RTA_DST.rawValue)
        let bytes = [UInt8](bytes: question) + [UInt8](bytes: attribute) + destination
        var found: (link: Int32, text: String)?
        do throws(SystemCallError) {
            try ask(UInt16(RTM_GETROUTE), bytes, flags: 0) { message in
                guard message.type == UInt16(RTM_NEWROUTE), let route: rtmsg = message.fixed() else { return }
                found = Self.way(route, message.attributes(after: MemoryLayout<rtmsg>.size))
            }
        } catch let error where [ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, EAFNOSUPPORT].contains(error.number) {
            // No route, a forbidden one, or no such protocol.
            return nil
        }
        return found
    }

    private static func way(
        _ route: rtmsg, _ attributes: [UInt16: ArraySlice<UInt8>]
    ) -> (link: Int32, text: String)? {
        let dead = UInt32(RTNH_F_DEAD) | UInt32(RTNH_F_LINKDOWN)
        guard Int(route.rtm_type) == Int(RTN_UNICAST), route.rtm_flags & dead == 0,
            let link: Int32 = attributes[UInt16(RTA_OIF.rawValue)]?.value()
        else { return nil }
        var words = ["link \(link)"]
        if let gateway = attributes[UInt16(RTA_GATEWAY.rawValue)].flatMap(text) { words.append("via \(gateway)") }
        if let source = attributes[UInt16(RTA_PREFSRC.rawValue)].flatMap(text) { words.append("from \(source)") }
        return (link, words.joined(separator: " "))
    }

    /// An address as text.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        let isDone = bytes.withUnsafeBytes {
            inet_ntop(family, $0.baseAddress, &text, socklen_t(INET6_ADDRSTRLEN)) != nil
        }
        return isDone ? String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    /// Sends one question and calls `body` with every message of the answer.
    private mutating func ask(
        _ type: UInt16, _ question: [UInt8], flags: UInt16, _ body: (NetlinkMessage) -> Void
    ) throws(SystemCallError) {
        lastSequence += 1
        var header = nlmsghdr()
        header.nlmsg_len = UInt32(NetlinkMessage.headerBytes + question.count)
        header.nlmsg_type = type
        header.nlmsg_flags = UInt16(NLM_F_REQUEST) | flags
        header.nlmsg_seq = lastSequence
        let bytes = [UInt8](bytes: header) + question
        let fd = socket.rawValue
        try check("send") { send(fd, bytes, bytes.count, 0) }
        var buffer = [UInt8](repeating: 0, count: Self.datagramBytes)
        while true {
            let count = try check("recv") { recv(fd, &buffer, buffer.count, 0) }
            for message in NetlinkMessage.all(in: buffer[..<count]) {
                if Int32(message.type) == NLMSG_DONE { return }
                if let number = message.errorNumber {
                    guard number == 0 else { throw SystemCallError(call: "netlink", number: number) }
                    return
                }
                body(message)
            }
            if flags & UInt16(NLM_F_DUMP) == 0 { return }
        }
    }
}

extension [UInt8] {
    fileprivate init<Value: BitwiseCopyable>(bytes value: Value) {
        self = Swift.withUnsafeBytes(of: value) { [UInt8]($0) }
    }
}
