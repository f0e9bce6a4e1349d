// The folder that is served, with its faults and its log.
internal import AssetsOS
internal import Glibc

/// Answers requests out of one folder. Used on the server's loop only.
final class Site {
    private let root: Descriptor
    private var faults: FaultLedger
    private let log: @Sendable (AccessRecord) -> Void
    private let clock: any CalendarClock

    init(
        root: consuming Descriptor, faults: FaultPlan, clock: any CalendarClock,
        log: @escaping @Sendable (AccessRecord) -> Void
    ) {
        self.root = root
        self.faults = FaultLedger(faults)
        self.clock = clock
        self.log = log
    }

    var now: Duration { clock.now }

    func setFaults(_ plan: FaultPlan) { faults = FaultLedger(plan) }

    func record(_ record: AccessRecord) { log(record) }

    func respond(to head: RequestHead) -> (response: Response, faults: AppliedFaults) {
        let knownMethods = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"]
        guard head.method == "GET" || head.method == "HEAD" else {
            let isKnown = knownMethods.contains(head.method)
            let fields = isKnown ? [("Allow", "GET, HEAD")] : []
            return (.plain(isKnown ? 405 : 501, head: head, now: now, fields: fields), AppliedFaults())
        }
        guard !head.hasBody else { return (.plain(413, head: head, now: now), AppliedFaults()) }
        let applied = faults.take(for: head.path)
        if let (code, retryAfter) = applied.status {
            let fields = retryAfter.map { [("Retry-After", "\($0)")] } ?? []
            return (.plain(code, head: head, now: now, fields: fields), applied)
        }
        do throws(SystemCallError) {
            // O_NONBLOCK: a named pipe in the folder must not stop the loop.
            let file = try root.open(inside: head.path.isEmpty ? "." : head.path, flags: O_RDONLY | O_NONBLOCK)
            var info = stat()
            let fd = file.rawValue
            try check("fstat") { fstat(fd, &info) }
            guard info.st_mode & S_IFMT == S_IFREG else { return (.plain(404, head: head, now: now), applied) }
            return (
                .file(ServedFile(file), status: info, head: head, takesRanges: !applied.dropsRanges, now: now), applied
            )
        } catch {
            let status =
                switch error.number {
                case ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, ENXIO: 404
                case EACCES, EPERM: 403
                default: 500
                }
            return (.plain(status, head: head, now: now), applied)
        }
    }
}
