// What the scripted servers send for one request.
package import AssetsModel
internal import AssetsTransfer

extension ScriptedServer.Reply {
    mutating func fill(
        _ answer: ScriptedResource.Answer, of resource: ScriptedResource, _ content: [UInt8], from offset: Int,
        ifRange validator: String?
    ) {
        bytesPerSecond = resource.bytesPerSecond
        switch answer {
        case .status(let status, let fields): head = ScriptedServer.head(status, fields)
        case .failure(let failure): self.failure = failure
        case .signIn:
            body = Self.signInPage[...]
            head = ScriptedServer.head(
                200,
                [
                    HeaderField(name: "Content-Type", value: "text/html"),
                    HeaderField(name: "Content-Length", value: "\(body.count)"),
                ])
        case .content, .cut:
            if let target = resource.redirect {
                head = ScriptedServer.head(302, [HeaderField(name: "Location", value: target)])
                return
            }
            send(content, of: resource, from: offset, ifRange: validator)
            if case .cut(let count) = answer, count < body.count {
                body = body.prefix(count)
                failure = ScriptedServer.broken
            }
        }
    }

    private static let signInPage = Array("<!doctype html><title>Sign in</title>".utf8)

    private mutating func send(
        _ content: [UInt8], of resource: ScriptedResource, from offset: Int, ifRange validator: String?
    ) {
        let isSameVersion = validator == nil || validator == resource.etag || validator == resource.lastModified
        let sendsPart =
            switch resource.parts {
            case .proper, .elsewhere, .unnamed: isSameVersion
            case .none: false
            case .bareOnly: validator == nil
            case .ofAnyVersion: true
            }
        let isPart = offset > 0 && sendsPart
        var fields = Self.names(of: resource, isPart: isPart)
        guard !isPart || offset < content.count else {
            fields.append(HeaderField(name: "Content-Range", value: "bytes */\(content.count)"))
            head = ScriptedServer.head(416, fields)
            return
        }
        let first = isPart ? resource.parts == .elsewhere ? offset - 1 : offset : 0
        body = content[first...]
        fields.append(HeaderField(name: "Content-Length", value: "\(body.count)"))
        if isPart {
            let range = "bytes \(first)-\(content.count - 1)/\(content.count)"
            fields.append(HeaderField(name: "Content-Range", value: range))
        }
        fields += Self.digests(resource.digest, content: content, sent: body, isPart: isPart)
        head = ScriptedServer.head(isPart ? 206 : 200, fields)
    }

    private static func names(of resource: ScriptedResource, isPart: Bool) -> [HeaderField] {
        var fields: [HeaderField] = []
        if resource.parts != .none { fields.append(HeaderField(name: "Accept-Ranges", value: "bytes")) }
        if isPart && resource.parts == .unnamed { return fields }
        if let etag = resource.etag { fields.append(HeaderField(name: "ETag", value: etag)) }
        if let date = resource.lastModified { fields.append(HeaderField(name: "Last-Modified", value: date)) }
        return fields
    }

    private static func digests(
        _ kind: ScriptedResource.Digest, content: [UInt8], sent: ArraySlice<UInt8>, isPart: Bool
    ) -> [HeaderField] {
        switch kind {
        case .none: []
        case .ofWhole: [field("Repr-Digest", of: content[...])]
        case .ofContent: [field("Content-Digest", of: sent)]
        case .ofObject where isPart: []
        case .ofObject:
            [
                HeaderField(
                    name: "x-amz-checksum-sha256", value: Base64.encode(ContentDigest.sha256(of: content[...]).bytes))
            ]
        case .wrong: [field("Repr-Digest", of: content[...] + [0])]
        }
    }

    private static func field(_ name: String, of bytes: ArraySlice<UInt8>) -> HeaderField {
        HeaderField(name: name, value: "sha-256=:\(Base64.encode(ContentDigest.sha256(of: bytes).bytes)):")
    }
}

extension ContentDigest {
    /// What some bytes come to.
    package static func sha256(of bytes: ArraySlice<UInt8>) -> ContentDigest {
        let hasher = ContentHasher(.sha256)
        bytes.withUnsafeBytes { hasher.add($0) }
        return hasher.digest()
    }
}
