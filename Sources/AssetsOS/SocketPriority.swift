// Low priority of what a socket sends.
internal import CLinux
internal import Glibc

/// What background transfers do so that others go first, where the kernel lets them.
///
/// Only what a socket sends can be marked; of a download that is requests and acknowledgements. Networks that know the
/// mark treat the other direction alike, and a queue of this machine that is full sends what is not marked first. The
/// other means were left out: a congestion control such as `lp` works on what is sent, and a smaller receive window costs
/// a background transfer its speed also when nobody else wants the network.
package enum SocketPriority {
    /// Lower Effort (RFC 8622), as it stands in the traffic class byte.
    private static let lowerEffort: Int32 = 1 << 2
    /// The kernel's lowest for what nobody waits for (TC_PRIO_FILLER).
    private static let filler: Int32 = 1

    /// Marks what a socket sends from now on, or takes the mark away. Each part that cannot be is left out.
    @discardableResult
    package static func set(_ socket: Int32, isDiscretionary: Bool) -> (network: Bool, kernel: Bool) {
        let mark = isDiscretionary ? lowerEffort : 0
        let isMarked4 = option(socket, Int32(IPPROTO_IP), IP_TOS, mark)
        let isMarked6 = option(socket, Int32(IPPROTO_IPV6), IPV6_TCLASS, mark)
        // Last: setting the mark sets the kernel's own priority as well.
        let isOrdered = option(socket, SOL_SOCKET, SO_PRIORITY, isDiscretionary ? filler : 0)
        return (isMarked4 || isMarked6, isOrdered)
    }

    /// What of it this kernel does.
    package static var abilities: (network: Bool, kernel: Bool) {
        let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { return (false, false) }
        defer { close(probe) }
        return set(probe, isDiscretionary: true)
    }

    private static func option(_ socket: Int32, _ level: Int32, _ name: Int32, _ value: Int32) -> Bool {
        var value = value
        return setsockopt(socket, level, name, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }
}
