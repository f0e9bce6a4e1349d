// Low priority of what a thread reads and writes.
internal import CLinux
internal import Glibc

package enum DiskPriority {
    /// From now on the disk serves the calling thread when nobody else wants it. False where the kernel does not do that.
    ///
    /// A thread of its own for such work costs less than to change the priority around each piece, and nobody's writes
    /// wait behind one that waits for everybody.
    package static func makeThreadIdle() -> Bool { clinux_set_idle_io_priority() == 0 }
}
