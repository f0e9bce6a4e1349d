// The host of a URL that may be fetched.

/// Where a request goes.
package struct RequestOrigin: Hashable, Sendable {
    /// Bytes of a URL that a refusal shows.
    private static let shownMax = 200

    /// Lower case, without brackets, port and a last dot.
    package let host: String

    /// Throws unless the URL is https (or http on a loopback host where `allowsLoopbackHTTP`).
    ///
    /// It is read as the transfer reads it, so that nothing is admitted for one host and fetched from another.
    package init(url: String, allowsLoopbackHTTP: Bool) throws(AssetsError) {
        func refuse(_ why: String) -> AssetsError {
            AssetsError(.downloadFailedToStart, "\(url.prefix(Self.shownMax)): \(why)", remedy: "use an https URL")
        }
        let address: WebAddress
        do throws(WebAddress.Problem) { address = try WebAddress(url) } catch {
            switch error {
            case .malformed: throw refuse("not an absolute URL with a host")
            case .foreignScheme: throw refuse("its scheme is not supported")
            }
        }
        guard address.scheme == .https || allowsLoopbackHTTP && Self.isLoopback(address.host) else {
            throw refuse("only https is allowed")
        }
        host = address.host
    }

    /// True for names and addresses that never leave the machine.
    package static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "::1"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (48...57).contains($0) })
    }
}
