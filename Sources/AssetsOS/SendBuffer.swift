// Bytes that wait until a socket takes them, and the descriptors that travel with some of them.
internal import Glibc

/// Outgoing bytes in order. Descriptors go with the first byte of their frame.
struct SendBuffer {
    /// Sent bytes are dropped from the front once they are this many.
    private static let slackMax = 64 << 10

    private struct Attachment {
        /// Index in `bytes`.
        var position: Int
        let descriptors: [SharedDescriptor]
    }

    private var bytes: [UInt8] = []
    private var sent = 0
    private var attachments: [Attachment] = []

    /// Bytes that still wait.
    var count: Int { bytes.count - sent }

    mutating func append(_ frame: some Collection<UInt8>, descriptors: [SharedDescriptor]) {
        if !descriptors.isEmpty { attachments.append(Attachment(position: bytes.count, descriptors: descriptors)) }
        bytes.append(contentsOf: frame)
    }

    /// Sends what the socket takes now. Returns the bytes that went; fewer than `count` mean that it would block.
    mutating func flush(to socket: borrowing Descriptor) throws(SystemCallError) -> Int {
        var went = 0
        while count > 0 {
            let piece = nextPiece()
            let number = try Self.send(bytes, piece.range, piece.descriptors, to: socket)
            guard number > 0 else { break }
            if !piece.descriptors.isEmpty { attachments.removeFirst() }
            sent += number
            went += number
        }
        dropSent()
        return went
    }

    /// Up to the next frame that has descriptors, for those must come with that frame's first byte.
    private func nextPiece() -> (range: Range<Int>, descriptors: [SharedDescriptor]) {
        guard let first = attachments.first else { return (sent..<bytes.count, []) }
        if first.position > sent { return (sent..<first.position, []) }
        let next = attachments.dropFirst().first?.position ?? bytes.count
        return (sent..<next, first.descriptors)
    }

    /// 0 when the socket takes nothing now.
    static func send(
        _ bytes: [UInt8], _ range: Range<Int>, _ descriptors: [SharedDescriptor], to socket: borrowing Descriptor
    ) throws(SystemCallError) -> Int {
        let raw = socket.rawValue
        let numbers = descriptors.map(\.rawValue)
        do throws(SystemCallError) {
            let send = { (all: UnsafeRawBufferPointer) throws(SystemCallError) -> Int in
                let piece = UnsafeRawBufferPointer(rebasing: all[range])
                guard numbers.isEmpty else { return try UnixSocket.send(piece, descriptors: numbers, overRaw: raw) }
                return try check("send") { Glibc.send(raw, piece.baseAddress, piece.count, Int32(MSG_NOSIGNAL)) }
            }
            return try bytes.span.withUnsafeBytes(send)
        } catch {
            if error.number == EAGAIN { return 0 }
            throw error
        }
    }

    private mutating func dropSent() {
        if sent == bytes.count {
            sent = 0
            if bytes.capacity > Self.slackMax { bytes = [] } else { bytes.removeAll(keepingCapacity: true) }
        } else if sent > Self.slackMax {
            bytes.removeFirst(sent)
            for index in attachments.indices { attachments[index].position -= sent }
            sent = 0
        }
    }
}
