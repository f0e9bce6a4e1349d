// A description as bytes, from the service to the launcher: both are built together, so there is no version.

extension SandboxDescription {
    /// Bytes of the longest description that the launcher reads: paths are bounded, and the filter has some 300
    /// instructions.
    package static let bytesMax = 256 << 10

    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.add(service)
        writer.add(layers.map(\.rawValue).sorted())
        writer.add(landlock.files.rawValue)
        writer.add(landlock.network)
        writer.add(landlock.scopes)
        writer.add(filter)
        writer.add(list: grants) { writer, grant in
            writer.add(grant.path)
            writer.add(grant.use.rawValue)
            writer.add(grant.isFolder ? UInt8(1) : 0)
        }
        writer.add(list: links) { writer, link in
            writer.add(link.path)
            writer.add(link.target)
        }
        writer.add(priority.nice)
        writer.add(priority.disk ?? -1)
        writer.add(list: limits) { writer, limit in
            writer.add(limit.resource)
            writer.add(limit.value)
        }
        writer.add(folder)
        writer.add(program)
        writer.add(list: arguments) { $0.add($1) }
        writer.add(list: environment) { $0.add($1) }
        writer.add(isTrial ? UInt8(1) : 0)
        return writer.bytes
    }

    /// nil for bytes that are no description.
    package init?(bytes: [UInt8]) {
        var reader = ByteReader(rest: bytes[...])
        do throws(ByteReader.Malformed) {
            service = try reader.number()
            layers = Set(try reader.bytes().compactMap(SandboxLayer.init))
            landlock = LandlockAbilities(version: 0)
            landlock.files = LandlockFileRights(rawValue: try reader.number())
            landlock.network = try reader.number()
            landlock.scopes = try reader.number()
            filter = try reader.bytes()
            grants = try reader.list { reader throws(ByteReader.Malformed) in
                let path = try reader.text()
                guard let use = SandboxGrant.Use(rawValue: try reader.number()) else { throw .init() }
                return SandboxGrant(path, use, isFolder: try reader.number() as UInt8 == 1)
            }
            links = try reader.list { reader throws(ByteReader.Malformed) in
                SandboxLink(try reader.text(), to: try reader.text())
            }
            let nice: Int32 = try reader.number()
            let disk: Int32 = try reader.number()
            priority = SandboxPriority(nice: nice, disk: disk < 0 ? nil : disk)
            limits = try reader.list { reader throws(ByteReader.Malformed) in
                SandboxLimit(resource: try reader.number(), value: try reader.number())
            }
            folder = try reader.text()
            program = try reader.text()
            arguments = try reader.list { reader throws(ByteReader.Malformed) in try reader.text() }
            environment = try reader.list { reader throws(ByteReader.Malformed) in try reader.text() }
            isTrial = try reader.number() as UInt8 == 1
        } catch { return nil }
        guard reader.isAtEnd else { return nil }
    }
}

/// Numbers least byte first, lists and texts with their count before them.
private struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func add<N: FixedWidthInteger>(_ number: N) {
        for place in stride(from: 0, to: N.bitWidth, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> place)) }
    }

    mutating func add(_ content: [UInt8]) {
        add(UInt32(content.count))
        bytes += content
    }

    mutating func add(_ text: String) { add(Array(text.utf8)) }

    mutating func add<E>(list: [E], _ element: (inout ByteWriter, E) -> Void) {
        add(UInt32(list.count))
        for item in list { element(&self, item) }
    }
}

private struct ByteReader {
    struct Malformed: Error {}

    var rest: ArraySlice<UInt8>

    var isAtEnd: Bool { rest.isEmpty }

    mutating func number<N: FixedWidthInteger>() throws(Malformed) -> N {
        let count = N.bitWidth / 8
        guard rest.count >= count else { throw Malformed() }
        var number: N = 0
        for (place, byte) in rest.prefix(count).enumerated() { number |= N(truncatingIfNeeded: byte) << (8 * place) }
        rest.removeFirst(count)
        return number
    }

    mutating func bytes() throws(Malformed) -> [UInt8] {
        let count = Int(try number() as UInt32)
        guard rest.count >= count else { throw Malformed() }
        defer { rest.removeFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func text() throws(Malformed) -> String { String(decoding: try bytes(), as: UTF8.self) }

    mutating func list<E>(_ element: (inout ByteReader) throws(Malformed) -> E) throws(Malformed) -> [E] {
        let count = Int(try number() as UInt32)
        // Each element takes at least a byte.
        guard count <= rest.count else { throw Malformed() }
        var result: [E] = []
        for _ in 0..<count { result.append(try element(&self)) }
        return result
    }
}
