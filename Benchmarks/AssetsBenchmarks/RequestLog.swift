// What nginx answered, request by request.
internal import BenchmarkKit

/// One answer.
struct LoggedAnswer {
    /// The address's path and query.
    var path: String
    /// The first byte that was sent.
    var start: Int64
    var status: Int
    /// Bytes of the body that were handed to the kernel.
    var sent: Int64
}

/// Reads nginx's log as it grows.
struct RequestLog {
    static let format = "$request_uri|$http_range|$status|$body_bytes_sent"

    private let path: String
    private var taken = 0

    init(of nginx: Nginx) { path = nginx.requests }

    /// What was answered since the last call, in the order in which the answers ended.
    mutating func take() throws -> [LoggedAnswer] {
        let lines = try Folder.text(path).split(separator: "\n").map(String.init)
        defer { taken = lines.count }
        return try lines.dropFirst(taken).map { line in
            let parts = line.split(separator: "|", omittingEmptySubsequences: false)
            guard parts.count == 4, let status = Int(parts[2]), let sent = Int64(parts[3]) else {
                throw BenchError("nginx logged what cannot be read: \(line)")
            }
            return LoggedAnswer(
                path: String(parts[0]), start: status == 206 ? start(of: parts[1]) : 0, status: status, sent: sent)
        }
    }

    /// The first byte of `bytes=10-`.
    private func start(of range: Substring) -> Int64 {
        guard range.hasPrefix("bytes=") else { return 0 }
        return Int64(range.dropFirst(6).prefix { $0 != "-" }) ?? 0
    }
}
