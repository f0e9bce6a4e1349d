// The server's connections, on its loop.
internal import AssetsOS
internal import Glibc

/// Accepts connections and drives them.
actor ServerCore {
    /// Connections at once; others wait in the kernel's queue.
    private static let connectionsMax = 256
    /// Between two looks at deadlines, and after a failed accept.
    private static let sweepInterval = Duration.seconds(1)
    /// EPOLLRDHUP: the peer has closed or will send nothing more.
    private static let peerLeft = EventLoop.Readiness(rawValue: 0x2000)

    private struct Member {
        let connection: Connection
        var waits: Connection.Wait?
        var timer: TimerToken?
    }

    private let loop: EventLoop
    private let listener: ListeningSocket
    private let tls: TLSContext?
    private let site: Site
    private let idleMax: Duration
    private var members: [Int: Member] = [:]
    private var lastNumber = 0
    private var isAccepting = false
    /// When a fault has closed the port: until it is opened again.
    private var reopening: TimerToken?
    private var sweep: TimerToken?
    private var isShutDown = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        loop: EventLoop, listener: sending ListeningSocket, tls: sending TLSContext?, site: sending Site,
        idleMax: Duration
    ) {
        self.loop = loop
        self.listener = listener
        self.tls = tls
        self.site = site
        self.idleMax = idleMax
    }

    func start() {
        // OpenSSL and sendfile write without a flag against SIGPIPE; blocked here, it touches no other thread.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        startAccepting()
    }

    func setFaults(_ plan: FaultPlan) { site.setFaults(plan) }

    func shutDown() {
        isShutDown = true
        stopAccepting()
        for timer in [sweep, reopening] { if let timer { loop.cancel(timer) } }
        for number in members.keys.sorted() { drop(number) }
    }

    // MARK: Accepting

    private func startAccepting() {
        guard !isAccepting, !isShutDown, reopening == nil, members.count < Self.connectionsMax else { return }
        do throws(SystemCallError) {
            try loop.watch(listener.descriptor.rawValue, for: .read) { [unowned self] _ in
                assumeIsolated { $0.accept() }
            }
            isAccepting = true
        } catch {
            scheduleSweep()
        }
    }

    private func stopAccepting() {
        guard isAccepting else { return }
        loop.unwatch(listener.descriptor.rawValue)
        isAccepting = false
    }

    private func accept() {
        while isAccepting, members.count < Self.connectionsMax {
            let fd = Glibc.accept(listener.descriptor.rawValue, nil, nil)
            if fd == -1 {
                if [EINTR, ECONNABORTED].contains(errno) { continue }
                if errno != EAGAIN {
                    // Out of descriptors or memory: trying again at once would spin.
                    stopAccepting()
                    scheduleSweep()
                }
                return
            }
            add(Descriptor(owning: fd))
        }
        stopAccepting()
    }

    private func add(_ socket: consuming Descriptor) {
        let fd = socket.rawValue
        _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)
        var on: Int32 = 1
        setsockopt(fd, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout.size(ofValue: on)))
        guard let stream = Stream(socket, context: tls) else { return }
        lastNumber += 1
        let connection = Connection(number: lastNumber, stream: stream, site: site, idleMax: idleMax, now: loop.now)
        members[lastNumber] = Member(connection: connection)
        scheduleSweep()
        advance(lastNumber)
    }

    // MARK: Driving

    private func advance(_ number: Int) {
        guard let member = members[number] else { return }
        let wait = member.connection.advance(now: loop.now)
        let fd = member.connection.stream.socket.rawValue
        switch wait {
        case .readable: watch(number, fd, .read, wait)
        case .writable: watch(number, fd, .write, wait)
        case .hangUp: watch(number, fd, Self.peerLeft, wait)
        case .closed: drop(number)
        case .time(let time):
            loop.unwatch(fd)
            members[number]?.waits = wait
            members[number]?.timer = loop.schedule(at: time) { [weak self] in
                self?.assumeIsolated { $0.advance(number) }
            }
        }
    }

    private func watch(_ number: Int, _ fd: Int32, _ readiness: EventLoop.Readiness, _ wait: Connection.Wait) {
        guard members[number]?.waits != wait else { return }
        do throws(SystemCallError) {
            try loop.watch(fd, for: readiness) { [unowned self] _ in assumeIsolated { $0.advance(number) } }
            members[number]?.waits = wait
        } catch {
            drop(number)
        }
    }

    private func drop(_ number: Int) {
        guard let member = members.removeValue(forKey: number) else { return }
        loop.unwatch(member.connection.stream.socket.rawValue)
        if let timer = member.timer { loop.cancel(timer) }
        // Before the client can know that it has to come again.
        if let refusal = member.connection.refusal { refuse(for: refusal) }
        member.connection.close()
        startAccepting()
    }

    // MARK: A closed port

    /// Closes the port, so that the kernel refuses connections, also those that wait to be accepted.
    private func refuse(for time: Duration) {
        guard reopening == nil, !isShutDown else { return }
        stopAccepting()
        listener.close()
        reopening = loop.schedule(after: time) { [weak self] in self?.assumeIsolated { $0.reopen() } }
    }

    private func reopen() {
        reopening = nil
        if listener.listen() { return startAccepting() }
        reopening = loop.schedule(after: Self.sweepInterval) { [weak self] in self?.assumeIsolated { $0.reopen() } }
    }

    // MARK: Deadlines

    /// Runs only while there are connections, or when accepting failed: an idle server never wakes.
    private func scheduleSweep() {
        guard sweep == nil, !isShutDown else { return }
        sweep = loop.schedule(after: Self.sweepInterval) { [weak self] in self?.assumeIsolated { $0.sweepNow() } }
    }

    private func sweepNow() {
        sweep = nil
        let now = loop.now
        for number in members.keys.sorted() {
            if let deadline = members[number]?.connection.deadline, deadline <= now { drop(number) }
        }
        startAccepting()
        if !members.isEmpty { scheduleSweep() }
    }
}
