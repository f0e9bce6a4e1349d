// A file of the scripted servers: its bytes, its versions, and the habits of who serves it.
package import AssetsModel

/// What a URL of the scripted server leads to.
package struct ScriptedResource: Sendable {
    /// Bytes of the file.
    package enum Body: Hashable, Sendable {
        /// So many bytes out of a seed.
        case generated(length: Int, seed: UInt64)
        case bytes([UInt8])
    }

    /// What one request gets.
    package enum Answer: Hashable, Sendable {
        case content
        /// This status without a body, with these fields.
        case status(Int, [HeaderField] = [])
        /// No response at all.
        case failure(TransportFailure)
        /// The content, but the connection breaks after so many bytes of it.
        case cut(after: Int)
        /// The page of a network that wants somebody to sign in.
        case signIn
    }

    /// How requests for the rest are answered.
    package enum Parts: Hashable, Sendable, CaseIterable {
        case proper
        /// Always with the whole.
        case none
        /// With the whole where If-Range stands beside Range, although it offers parts.
        case bareOnly
        /// With a part that begins a byte too early.
        case elsewhere
        /// With the right part, and neither tag nor date.
        case unnamed
        /// With a part of what it has now, whatever If-Range says.
        case ofAnyVersion
    }

    /// What is sent beside the bytes.
    package enum Digest: Hashable, Sendable, CaseIterable {
        case none
        case ofWhole
        case ofContent
        case ofObject
        /// That of other bytes.
        case wrong
    }

    /// What a URL leads to from some request on.
    package struct Version: Hashable, Sendable {
        package var request: Int
        package var body: Body
        package var etag: String?
        package var lastModified: String?
        package init(from request: Int, _ body: Body, etag: String?, lastModified: String? = nil) {
            self.request = request
            self.body = body
            self.etag = etag
            self.lastModified = lastModified
        }
    }

    package var body: Body
    /// With its quotes.
    package var etag: String?
    /// A date before `ScriptedServer.date`, as it stands in the header.
    package var lastModified: String?
    /// What it does about requests for the rest.
    package var parts = Parts.proper
    /// What it says of the bytes.
    package var digest = Digest.none
    /// Other files that take its place, each before the request of that number (the first is 0): later ones last.
    package var versions: [Version] = []
    /// Only who sends this is served, by Basic in the realm "scripted".
    package var credential: Credential?
    /// Every request is redirected there.
    package var redirect: String?
    /// From the request to the head of the response.
    package var latency = Duration.milliseconds(20)
    /// nil for no limit; 0 for a body that never comes.
    package var bytesPerSecond: Int?
    /// What the first requests get; those after them get the content.
    package var answers: [Answer] = []

    package init(_ body: Body, etag: String? = "\"1\"", bytesPerSecond: Int? = nil, answers: [Answer] = []) {
        self.body = body
        self.etag = etag
        self.bytesPerSecond = bytesPerSecond
        self.answers = answers
    }

    /// All bytes of the file.
    package var content: [UInt8] { Self.content(of: body) }

    static func content(of body: Body) -> [UInt8] {
        switch body {
        case .bytes(let bytes): bytes
        case .generated(let length, let seed): generate(length, seed)
        }
    }

    private static func generate(_ length: Int, _ seed: UInt64) -> [UInt8] {
        var sequence = SeededSequence(seed: seed, stream: "content")
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            for start in stride(from: 0, to: length, by: 8) {
                let word = sequence.next()
                for offset in 0..<min(8, length - start) {
                    buffer[start + offset] = UInt8(truncatingIfNeeded: word >> (8 * offset))
                }
            }
            count = length
        }
    }
}
