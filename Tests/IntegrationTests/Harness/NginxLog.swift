// What nginx says of the requests that it has answered.

/// An access log whose lines are read in the order in which their requests began. nginx writes each as its request ends: one
/// whose client has gone it may notice long after others.
enum NginxLog {
    /// Stands before the fields of a log format.
    static let prefix = "$msec|$request_time|"

    /// The fields of each line.
    static func lines(_ text: String) -> [[String]] {
        let lines = text.split(separator: "\n").compactMap { line -> (began: Int, fields: [String])? in
            let parts = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            guard parts.count > 2, let ended = Double(parts[0]), let time = Double(parts[1]) else { return nil }
            return (Int(((ended - time) * 1000).rounded()), Array(parts[2...]))
        }
        return lines.sorted { $0.began < $1.began }.map(\.fields)
    }
}
