// Frames on a blocking socket: what clients and the extension's side use.
internal import Glibc

/// Sends and receives frames that end with NUL, one caller at a time; both block.
package final class FrameStream {
    /// Why nothing more comes or goes.
    package enum Failure: Error, Hashable, Sendable {
        /// The peer closed in the middle of a frame.
        case truncated
        case frameTooLong
        case failed(SystemCallError)
    }

    private let socket: SharedDescriptor
    private let frameMax: Int
    private var incoming: ReceiveBuffer

    /// `frameMax` counts without the NUL.
    package init(_ socket: SharedDescriptor, frameMax: Int) {
        self.socket = socket
        self.frameMax = frameMax
        incoming = ReceiveBuffer(frameMax: frameMax)
    }

    /// Sends a frame, given without its NUL.
    package func send(_ frame: consuming [UInt8]) throws(Failure) {
        frame.append(0)
        let raw = socket.rawValue
        let bytes = frame.span.bytes
        var sent = 0
        while sent < bytes.byteCount {
            let write = { (rest: UnsafeRawBufferPointer) throws(SystemCallError) -> Int in
                try check("send") { Glibc.send(raw, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL)) }
            }
            do throws(SystemCallError) {
                sent += try bytes.extracting(sent...).withUnsafeBytes(write)
            } catch {
                throw .failed(error)
            }
        }
    }

    /// Waits for the next frame, without its NUL; nil when the peer closed between frames.
    ///
    /// For `watching` the thread asks again and again before it sleeps: for answers that come sooner than an idle
    /// processor can be woken.
    ///
    /// The bytes are valid until the next call.
    package func receive(watchingFor watching: Duration = .zero) throws(Failure) -> UnsafeRawBufferPointer? {
        while true {
            if let frame = incoming.nextFrame() {
                guard frame.count <= frameMax else { throw .frameTooLong }
                return frame
            }
            guard !incoming.isOverfull else { throw .frameTooLong }
            let count = try readSome(watchingFor: watching)
            guard count > 0 else {
                if incoming.isEmpty { return nil }
                throw .truncated
            }
            incoming.filled(count)
        }
    }

    /// Reads what is there, or waits for it.
    private func readSome(watchingFor watching: Duration) throws(Failure) -> Int {
        let raw = socket.rawValue
        let room = incoming.room()
        if watching > .zero {
            let end = MonotonicClock.now + watching
            repeat {
                let count = recv(raw, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
                if count >= 0 { return count }
                guard errno == EAGAIN else { break }
            } while MonotonicClock.now < end
        }
        do throws(SystemCallError) {
            return try check("read") { read(raw, room.baseAddress, room.count) }
        } catch {
            throw .failed(error)
        }
    }
}
