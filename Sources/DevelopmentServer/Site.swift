// The folder that is served, with its faults and its log.
internal import AssetsOS
internal import Glibc

/// What a request gets: an answer, the file it is made of, and the faults that are left to apply while it is sent.
struct Answer {
    var response: Response
    var file: ServedFile?
    var faults: AppliedFaults

    init(_ response: Response, file: ServedFile? = nil, faults: AppliedFaults = AppliedFaults()) {
        self.response = response
        self.file = file
        self.faults = faults
    }
}

/// Answers requests out of one folder. Used on the server's loop only.
final class Site {
    private let root: Descriptor
    private var ledger: FaultLedger
    private let log: @Sendable (AccessRecord) -> Void
    private let clock: any CalendarClock

    init(
        root: consuming Descriptor, faults: FaultPlan, clock: any CalendarClock,
        log: @escaping @Sendable (AccessRecord) -> Void
    ) {
        self.root = root
        ledger = FaultLedger(faults)
        self.clock = clock
        self.log = log
    }

    var now: Duration { clock.now }

    func setFaults(_ plan: FaultPlan) { ledger = FaultLedger(plan) }

    func record(_ record: AccessRecord) { log(record) }

    func faults(forHost host: String) -> AppliedFaults { ledger.take(forHost: host) }

    /// `isReused` when the connection has brought a request before.
    func respond(to head: RequestHead, isReused: Bool) -> Answer {
        let knownMethods = ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"]
        guard head.method == "GET" || head.method == "HEAD" else {
            let isKnown = knownMethods.contains(head.method)
            let fields = isKnown ? [Response.Field("Allow", "GET, HEAD")] : []
            return Answer(.plain(isKnown ? 405 : 501, to: head, fields: fields))
        }
        guard !head.hasBody else { return Answer(.plain(413, to: head)) }
        let faults = ledger.take(for: head.path, isReused: isReused)
        var answer = Answer(.plain(404, to: head), faults: faults)
        if let response = Response.instead(of: faults, to: head, now: now) {
            answer.response = response
        } else {
            do throws(SystemCallError) { try find(head, faults, &answer) } catch {
                answer.response = .plain(Self.status(of: error), to: head)
            }
        }
        answer.response.bend(by: faults)
        return answer
    }

    private func find(_ head: RequestHead, _ faults: AppliedFaults, _ answer: inout Answer) throws(SystemCallError) {
        // O_NONBLOCK: a named pipe in the folder must not stop the loop.
        let file = try root.open(inside: head.path.isEmpty ? "." : head.path, flags: O_RDONLY | O_NONBLOCK)
        var info = stat()
        let fd = file.rawValue
        try check("fstat") { fstat(fd, &info) }
        guard info.st_mode & S_IFMT == S_IFREG else { return }
        var version = FileVersion(info, faults: faults)
        // It blocks other connections while it reads the file, which is why nobody gets it unasked.
        if faults.has(.digest) { version.digest = try FileDigest.base64(of: file, mask: version.change.mask) }
        answer.response = .file(version, to: head, faults: faults)
        answer.file = ServedFile(file)
    }

    private static func status(of error: SystemCallError) -> Int {
        switch error.number {
        case ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, ENXIO: 404
        case EACCES, EPERM: 403
        default: 500
        }
    }
}
