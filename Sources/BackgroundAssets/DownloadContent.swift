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
    /// What the file must come to; the service refuses another number of bytes than 32.
    var sha256: [UInt8]?

    init(
        identifier: String, request: URLRequest, group: String, isEssential: Bool, size: Int64, priority: Int,
        sha256: [UInt8]? = nil
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
        self.sha256 = sha256
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
        sha256 = wire.sha256.map { Self.bytes($0) }
    }

    func wire(state: BADownload.State) -> WireDownload {
        WireDownload(
            identifier: identifier, uniqueIdentifier: uniqueIdentifier, url: url, method: method, headers: headers,
            body: Data(body).base64EncodedString(), group: group, essential: isEssential, size: size,
            priority: Int64(priority), kind: kind.rawValue, state: Int64(state.rawValue),
            sha256: sha256.map { Self.digits($0) })
    }

    /// Two digits for each byte.
    private static func digits(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Empty for what are no pairs of digits.
    private static func bytes(_ digits: String) -> [UInt8] {
        let values = digits.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard values.count % 2 == 0 else { return [] }
        let bytes = stride(from: 0, to: values.count, by: 2).compactMap { place -> UInt8? in
            guard let high = values[place], let low = values[place + 1] else { return nil }
            return UInt8(high << 4 | low)
        }
        return bytes.count == values.count / 2 ? bytes : []
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
        return escaped + (body.count + 2) / 3 * 4 + 2 * (sha256?.count ?? 0) + Self.overheadMax
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
        /// Only where there is one.
        static let sha256 = "SHA256"

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
        if let sha256 { coder.encode(Data(sha256) as NSData, forKey: Key.sha256) }
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
        var sha256: [UInt8]?
        if coder.containsValue(forKey: Key.sha256) {
            guard let data = coder.decodeObject(of: NSData.self, forKey: Key.sha256) else { return nil }
            sha256 = [UInt8](data as Data)
        }
        let wire = WireDownload(
            identifier: identifier, uniqueIdentifier: unique, url: url, method: method,
            headers: zip(names, values).map { WireHeaderField(name: $0, value: $1) },
            body: (bytes as Data).base64EncodedString(), group: group,
            essential: coder.decodeBool(forKey: Key.essential), size: coder.decodeInt64(forKey: Key.size),
            priority: coder.decodeInt64(forKey: Key.priority), kind: kind, state: 0)
        let state = BADownload.State(rawValue: Int(clamping: coder.decodeInt64(forKey: Key.state))) ?? .created
        var content = DownloadContent(wire)
        content.sha256 = sha256
        return (content, state)
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
