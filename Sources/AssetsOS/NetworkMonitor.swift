// Following the machine's network: the kernel tells of changed links, addresses and routes, and is asked how it is then.
internal import CLinux
internal import Glibc

/// The network at one moment.
package struct NetworkState: Hashable, Sendable {
    /// Addresses on links that are up, sorted.
    package var addresses: [String] = []
    /// Those on links with a carrier, without the loopback's.
    package var connected: [String] = []
    /// How one gets to far hosts, for each protocol that leads there.
    package var ways: [String] = []
}

/// Tells how the network is, and again after every change; between changes it costs nothing.
///
/// All members are used on the loop only, which `EventLoop` checks.
package final class NetworkMonitor: @unchecked Sendable {
    // Sendable because every access is on the loop's one thread: `checkIsolated` stops the process otherwise.

    /// Far hosts that have been at their addresses for decades: a root server of DNS. Nothing is sent to it.
    private static let farHosts: [[UInt8]] = [
        [198, 41, 0, 4], [0x20, 0x01, 0x05, 0x03, 0xBA, 0x3E, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0x30],
    ]
    /// RTMGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR, _IPV6_ROUTE
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    private let loop: EventLoop
    private let settleTime: Duration
    private let changed: @Sendable (NetworkState) -> Void
    private var socket: Descriptor?
    private var last: NetworkState?
    private var timer: TimerToken?

    /// Calls `changed` on the loop, once before this returns. Call on the loop.
    ///
    /// - Parameter settleTime: News are gathered so long before the kernel is asked.
    package init(
        on loop: EventLoop, settleTime: Duration, changed: @escaping @Sendable (NetworkState) -> Void
    ) throws(SystemCallError) {
        loop.checkIsolated()
        self.loop = loop
        self.settleTime = settleTime
        self.changed = changed
        let socket = try NetlinkQuery.open(groups: Self.groups, flags: Int32(SOCK_NONBLOCK.rawValue))
        let fd = socket.rawValue
        self.socket = consume socket
        // After the socket was opened, so that no change falls in between.
        let state = try Self.look()
        try listen(fd)
        tell(state)
    }

    /// Tells nothing any more.
    package func cancel() {
        loop.checkIsolated()
        if let timer { loop.cancel(timer) }
        timer = nil
        guard let socket = socket.take() else { return }
        loop.unwatch(socket.rawValue)
    }

    private func listen(_ fd: Int32) throws(SystemCallError) {
        try loop.watch(fd, for: .read) { [self] _ in
            // A machine whose routes change all the time does not wake us for each of them.
            loop.unwatch(fd)
            timer = loop.schedule(after: settleTime) { [self] in settled(fd) }
        }
    }

    private func settled(_ fd: Int32) {
        timer = nil
        var buffer = [UInt8](repeating: 0, count: 8192)
        // What the news say does not matter, nor that some were lost (ENOBUFS): the kernel is asked anew.
        while recv(fd, &buffer, buffer.count, 0) > 0 || errno == ENOBUFS || errno == EINTR {}
        do throws(SystemCallError) {
            try listen(fd)
            tell(try Self.look())
        } catch {
            // Out of memory for the moment: asked again as if there were more news.
            if timer == nil { timer = loop.schedule(after: settleTime * 10) { [self] in settled(fd) } }
        }
    }

    private func tell(_ state: NetworkState) {
        guard state != last else { return }
        last = state
        changed(state)
    }

    /// How the network is now.
    static func look() throws(SystemCallError) -> NetworkState {
        var query = try NetlinkQuery()
        var state = NetworkState()
        let links = try query.links()
        func has(_ link: Int32, _ flags: Int, without others: Int = 0) -> Bool {
            let found = links[link] ?? 0
            return found & UInt32(flags) == UInt32(flags) && found & UInt32(others) == 0
        }
        let (up, running, loopback) = (Int(IFF_UP), Int(IFF_RUNNING), Int(IFF_LOOPBACK))
        for address in try query.addresses() where has(address.link, up) {
            state.addresses.append(address.text)
            if has(address.link, running, without: loopback) { state.connected.append(address.text) }
        }
        for host in farHosts {
            guard let way = try query.way(to: host), has(way.link, up | running, without: loopback) else { continue }
            state.ways.append(way.text)
        }
        state.addresses.sort()
        state.connected.sort()
        return state
    }
}
