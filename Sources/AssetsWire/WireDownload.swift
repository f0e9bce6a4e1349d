// Types that the manager and extension interfaces share.

package struct WireHeaderField: Codable, Hashable, Sendable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// kind is "url" or "manifest". state is that of BADownload.State: -1 failed, 0 created, 1 waiting, 2 downloading,
/// 3 finished. body is base64, sha256 64 hexadecimal digits.
package struct WireDownload: Codable, Hashable, Sendable {
    package var identifier: String
    package var uniqueIdentifier: String
    package var url: String
    package var method: String
    package var headers: [WireHeaderField]
    package var body: String
    package var group: String
    package var essential: Bool
    /// Bytes, 0 when unknown.
    package var size: Int64
    package var priority: Int64
    package var kind: String
    package var state: Int64
    /// What the file must come to, where the app says so.
    package var sha256: String?

    package init(
        identifier: String, uniqueIdentifier: String, url: String, method: String, headers: [WireHeaderField],
        body: String, group: String, essential: Bool, size: Int64, priority: Int64, kind: String, state: Int64,
        sha256: String? = nil
    ) {
        self.identifier = identifier
        self.uniqueIdentifier = uniqueIdentifier
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        self.group = group
        self.essential = essential
        self.size = size
        self.priority = priority
        self.kind = kind
        self.state = state
        self.sha256 = sha256
    }

    private enum CodingKeys: String, CodingKey {
        case identifier
        case uniqueIdentifier = "unique_identifier"
        case url
        case method
        case headers
        case body
        case group
        case essential
        case size
        case priority
        case kind
        case state
        case sha256
    }
}

/// domain is "BAErrorDomain" or "NSURLErrorDomain".
package struct WireFailure: Codable, Hashable, Sendable {
    package var domain: String
    package var code: Int64
    package var reason: String

    package init(domain: String, code: Int64, reason: String) {
        self.domain = domain
        self.code = code
        self.reason = reason
    }
}
