// One line of the access log, as a value.

/// A request that was answered, as far as the answer went.
package struct AccessRecord: Hashable, Sendable {
    /// Calendar clock, since 1970, when the answer ended.
    package var time: Duration
    /// Counts the server's connections from 1.
    package var connection: Int
    /// Empty where the request could not be read.
    package var method: String
    /// The decoded path; empty where the request could not be read.
    package var path: String
    /// The Range header as it came; nil without.
    package var range: String?
    package var status: Int
    /// Bytes of the body that were handed to the kernel.
    package var bytesSent: Int64
    /// Whether the whole answer was handed to the kernel.
    package var isComplete: Bool
    /// The fault that was applied, as it is written on the command line; empty without.
    package var fault: String

    package init(
        time: Duration, connection: Int, method: String, path: String, range: String?, status: Int, bytesSent: Int64,
        isComplete: Bool, fault: String
    ) {
        self.time = time
        self.connection = connection
        self.method = method
        self.path = path
        self.range = range
        self.status = status
        self.bytesSent = bytesSent
        self.isComplete = isComplete
        self.fault = fault
    }
}
