// Bytes that arrived on a stream, cut into frames without copying them again.
internal import Glibc

/// One growing buffer of received bytes; frames in it end with NUL.
struct ReceiveBuffer: ~Copyable {
    /// Bytes at first, and again after a long frame was taken.
    private static let capacityMin = 4 << 10
    /// Above this the memory is given back as soon as the buffer is empty.
    private static let capacityKept = 64 << 10

    private let frameMax: Int
    private var memory: UnsafeMutableRawPointer
    private var capacity: Int
    private var start = 0
    private var end = 0
    /// Up to here there is no NUL.
    private var searched = 0

    init(frameMax: Int) {
        self.frameMax = frameMax
        capacity = Self.capacityMin
        memory = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { memory.deallocate() }

    var isEmpty: Bool { start == end }

    /// True when the bytes without NUL are already more than a frame may have.
    var isOverfull: Bool { end - start > frameMax }

    /// Room for the next read, at least one byte as long as the buffer is not overfull.
    mutating func room() -> UnsafeMutableRawBufferPointer {
        if start == end { reset() }
        if end == capacity {
            if start > 0 { moveToFront() } else { grow() }
        }
        return UnsafeMutableRawBufferPointer(start: memory + end, count: capacity - end)
    }

    /// Says how much of the room was filled.
    mutating func filled(_ count: Int) { end += count }

    /// The next whole frame without its NUL; it stays valid until `room()` is called.
    mutating func nextFrame() -> UnsafeRawBufferPointer? {
        guard searched < end, let found = memchr(memory + searched, 0, end - searched) else {
            searched = end
            return nil
        }
        let stop = UnsafeRawPointer(found) - UnsafeRawPointer(memory)
        let frame = UnsafeRawBufferPointer(start: memory + start, count: stop - start)
        start = stop + 1
        searched = start
        return frame
    }

    private mutating func reset() {
        start = 0
        end = 0
        searched = 0
        guard capacity > Self.capacityKept else { return }
        memory.deallocate()
        capacity = Self.capacityMin
        memory = .allocate(byteCount: capacity, alignment: 16)
    }

    private mutating func moveToFront() {
        memmove(memory, memory + start, end - start)
        searched -= start
        end -= start
        start = 0
    }

    private mutating func grow() {
        // One byte for the NUL, one to notice that there is none.
        let larger = min(capacity * 2, frameMax + 2)
        let fresh = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        memcpy(fresh, memory, end)
        memory.deallocate()
        memory = fresh
        capacity = larger
    }
}
