// The values of a download: from a request, to and from the wire, to and from an archive.

internal import AssetsWire
internal import Foundation
internal import FoundationNetworking

/// What a download asks for. Nothing here changes after it was made.
struct DownloadContent: Hashable, Sendable {
    /// Who asked: the app or extension, or the property list.
    enum Kind: String, Sendable {
        case url
        case manifest
    }

    var identifier: String
    var uniqueIdentifier: String
    var url: String
    var method: String
    var headers: [WireHeaderField]
    var body: [UInt8]
    /// The request's body is a stream, which cannot be sent to the service.
    var hasBodyStream: Bool
    var group: String
    var isEssential: Bool
    var size: Int64
    var priority: Int
    var kind: Kind

    init(
        identifier: String, request: URLRequest, group: String, isEssential: Bool, size: Int64, priority: Int
    ) {
        self.identifier = identifier
        uniqueIdentifier = UUID().uuidString
        url = request.url?.absoluteString ?? ""
        method = request.httpMethod ?? "GET"
        headers = (request.allHTTPHeaderFields ?? [:]).map { WireHeaderField(name: $0.key, value: $0.value) }
            .sorted { ($0.name, $0.value) < ($1.name, $1.value) }
        body = request.httpBody.map { [UInt8]($0) } ?? []
        hasBodyStream = request.httpBodyStream != nil && request.httpBody == nil
        self.group = group
        self.isEssential = isEssential
        self.size = size
        self.priority = priority
        kind = .url
    }

    init(_ wire: WireDownload) {
        identifier = wire.identifier
        uniqueIdentifier = wire.uniqueIdentifier
        url = wire.url
        method = wire.method
        headers = wire.headers
        body = Data(base64Encoded: wire.body).map { [UInt8]($0) } ?? []
        hasBodyStream = false
        group = wire.group
        isEssential = wire.essential
        size = wire.size
        priority = Int(clamping: wire.priority)
        kind = Kind(rawValue: wire.kind) ?? .url
    }

    func wire(state: BADownload.State) -> WireDownload {
        WireDownload(
            identifier: identifier, uniqueIdentifier: uniqueIdentifier, url: url, method: method, headers: headers,
            body: Data(body).base64EncodedString(), group: group, essential: isEssential, size: size,
            priority: Int64(priority), kind: kind.rawValue, state: Int64(state.rawValue))
    }

    /// Bytes of a message around the texts of one download: names of members, numbers, the message itself.
    private static let overheadMax = 1024

    /// At most so many bytes has the download in a message.
    var wireSize: Int {
        let texts = [identifier, uniqueIdentifier, url, method, group] + headers.flatMap { [$0.name, $0.value] }
        // JSON writes some bytes as six, and a header field has about thirty of its own.
        let escaped = texts.reduce(0) { sum, text in
            sum + text.utf8.reduce(16) { $0 + ($1 < 0x20 || $1 == 0x22 || $1 == 0x5C || $1 == 0x7F ? 6 : 1) }
        }
        return escaped + (body.count + 2) / 3 * 4 + Self.overheadMax
    }

    /// Why this download cannot even be put into a message; `nil` when it can.
    var obstacle: (reason: String, remedy: String)? {
        if hasBodyStream {
            return ("the request of \(shownIdentifier) has its body as a stream", "set httpBody instead")
        }
        guard wireSize > WireLimit.messageMax else { return nil }
        return (
            "\(shownIdentifier) is larger than \(WireLimit.messageMax) bytes with identifier, URL, header fields and body",
            "make the largest of them smaller"
        )
    }

    /// Characters of an identifier in a message for people.
    private static let shownMax = 80

    /// The identifier as it can stand in a message.
    var shownIdentifier: String {
        identifier.isEmpty ? "a download without identifier" : String(identifier.prefix(Self.shownMax))
    }
}

// MARK: - Archives

extension DownloadContent {
    /// Keys of an archive.
    private enum Key {
        static let identifier = "identifier"
        static let uniqueIdentifier = "uniqueIdentifier"
        static let url = "URL"
        static let method = "method"
        static let headerNames = "headerNames"
        static let headerValues = "headerValues"
        static let body = "body"
        static let group = "applicationGroupIdentifier"
        static let essential = "essential"
        static let size = "fileSize"
        static let priority = "priority"
        static let kind = "kind"
        static let state = "state"

        static let all = [
            identifier, uniqueIdentifier, url, method, headerNames, headerValues, body, group, essential, size,
            priority, kind, state,
        ]
    }

    func encode(with coder: NSCoder, state: BADownload.State) {
        guard coder.allowsKeyedCoding else { return }
        coder.encode(identifier as NSString, forKey: Key.identifier)
        coder.encode(uniqueIdentifier as NSString, forKey: Key.uniqueIdentifier)
        coder.encode(url as NSString, forKey: Key.url)
        coder.encode(method as NSString, forKey: Key.method)
        coder.encode(headers.map { $0.name as NSString } as NSArray, forKey: Key.headerNames)
        coder.encode(headers.map { $0.value as NSString } as NSArray, forKey: Key.headerValues)
        coder.encode(Data(body) as NSData, forKey: Key.body)
        coder.encode(group as NSString, forKey: Key.group)
        coder.encode(isEssential, forKey: Key.essential)
        coder.encode(size, forKey: Key.size)
        coder.encode(Int64(priority), forKey: Key.priority)
        coder.encode(kind.rawValue as NSString, forKey: Key.kind)
        coder.encode(Int64(state.rawValue), forKey: Key.state)
    }

    /// The values of an archive, and the state it was written in; `nil` when there are none.
    static func decode(from coder: NSCoder) -> (content: DownloadContent, state: BADownload.State)? {
        if let direct = coder as? DownloadContentCoder { return (direct.content, .created) }
        // Asking for a value that is not there ends the process, unless the archive's reader says otherwise.
        guard coder.allowsKeyedCoding, Key.all.allSatisfy(coder.containsValue(forKey:)) else { return nil }
        func text(_ key: String) -> String? {
            coder.decodeObject(of: NSString.self, forKey: key).map { $0 as String }
        }
        func texts(_ key: String) -> [String]? {
            coder.decodeObject(of: [NSArray.self, NSString.self], forKey: key) as? [String]
        }
        guard let identifier = text(Key.identifier), let unique = text(Key.uniqueIdentifier),
            UUID(uuidString: unique) != nil, let url = text(Key.url), let method = text(Key.method),
            let names = texts(Key.headerNames), let values = texts(Key.headerValues), names.count == values.count,
            let group = text(Key.group), let kind = text(Key.kind),
            let bytes = coder.decodeObject(of: NSData.self, forKey: Key.body)
        else { return nil }
        let wire = WireDownload(
            identifier: identifier, uniqueIdentifier: unique, url: url, method: method,
            headers: zip(names, values).map { WireHeaderField(name: $0, value: $1) },
            body: (bytes as Data).base64EncodedString(), group: group,
            essential: coder.decodeBool(forKey: Key.essential), size: coder.decodeInt64(forKey: Key.size),
            priority: coder.decodeInt64(forKey: Key.priority), kind: kind, state: 0)
        let state = BADownload.State(rawValue: Int(clamping: coder.decodeInt64(forKey: Key.state))) ?? .created
        return (DownloadContent(wire), state)
    }
}

/// Carries values into `init(coder:)`, the one initialiser that every subclass has.
final class DownloadContentCoder: NSCoder {
    let content: DownloadContent

    init(_ content: DownloadContent) {
        self.content = content
        super.init()
    }
}
