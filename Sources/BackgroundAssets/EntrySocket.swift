// The socket on which the service calls the entry points: frames in, frames out, blocking.

internal import AssetsOS
internal import AssetsWire
internal import Glibc

/// Reads and writes frames that end with NUL.
///
/// One thread reads; frames are written by one serial queue.
final class EntrySocket: Sendable {
    /// Bytes of one read.
    private static let chunkSize = 16 << 10

    private let descriptor: SharedDescriptor

    init(_ descriptor: consuming Descriptor) { self.descriptor = SharedDescriptor(descriptor) }

    /// Calls `received` with every frame until the peer closes, sends what is no frame, or `received` answers false.
    func readFrames(_ received: (UnsafeRawBufferPointer) -> Bool) {
        let raw = descriptor.rawValue
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkSize, alignment: 16)
        defer { chunk.deallocate() }
        while true {
            guard let count = try? check("read", { read(raw, chunk.baseAddress, chunk.count) }), count > 0 else {
                return
            }
            let searched = bytes.count
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<count]))
            var start = 0
            while let stop = bytes[max(start, searched)...].firstIndex(of: 0) {
                let goesOn = bytes[start..<stop].withUnsafeBytes(received)
                guard goesOn else { return }
                start = stop + 1
            }
            bytes.removeFirst(start)
            guard bytes.count <= WireLimit.messageMax else { return }
        }
    }

    /// Writes a frame and its NUL. A peer that is gone takes nothing; the reader notices.
    func write(_ frame: [UInt8]) {
        let raw = descriptor.rawValue
        var rest = (frame + [0])[...]
        while !rest.isEmpty {
            let sent = try? check("send") {
                rest.withUnsafeBytes { send(raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            }
            guard let sent else { return }
            rest = rest.dropFirst(sent)
        }
    }

    /// Ends both directions: a blocked read returns.
    func shutDown() { UnixSocket.shutDown(descriptor) }
}
