// What a transport's failure says about the next attempt. docs/retry.md has the whole table, with its reasons.

/// What follows from an attempt that ended without the whole response.
package enum FailureMeaning: Hashable, Sendable {
    /// Another attempt may succeed.
    case interrupts(Interruption.Kind, Reason)
    /// No other attempt would.
    case refuses(Reason)
}

extension TransportFailure {
    package var meaning: FailureMeaning {
        switch kind {
        case .resolve, .timeout: .interrupts(.unreachable, .network)
        case .connect:
            .interrupts(.unreachable, code == URLErrorCode.notConnectedToInternet ? .offline : .network)
        case .tls: .interrupts(.unreachable, .network)
        case .certificate: .interrupts(.unreachable, .certificate)
        case .proxy: .interrupts(.unreachable, .proxy)
        case .stall: .interrupts(.broken, .stall)
        case .reset, .partial, .cancelled, .other: .interrupts(.broken, .network)
        case .protocol: .interrupts(.broken, .http)
        case .memory: .interrupts(.broken, .memory)
        case .invalid: .refuses(.invalid)
        }
    }
}
