// The locks that come with `import os`.
import Foundation
import Testing
import os.lock

@Suite struct LockTests {
    @Test("Threads that count under a lock lose nothing", arguments: [4])
    func counting(threads: Int) {
        let counter = OSAllocatedUnfairLock(initialState: 0)
        let plain = UnfairCounter()
        DispatchQueue.concurrentPerform(iterations: threads) { _ in
            for _ in 0..<20_000 {
                counter.withLock { $0 += 1 }
                plain.count()
            }
        }
        #expect(counter.withLock { $0 } == threads * 20_000)
        #expect(plain.value == threads * 20_000)
    }

    @Test("A held lock is not had twice")
    func held() {
        let lock = OSAllocatedUnfairLock()
        lock.lock()
        #expect(!lock.lockIfAvailable())
        #expect(lock.withLockIfAvailable { true } == nil)
        lock.unlock()
        #expect(lock.withLockIfAvailable { true } == true)
        #expect(lock.lockIfAvailable())
        lock.unlock()
    }

    @Test("A protected object lives as long as the lock, and goes once")
    func lifetime() {
        let keeper = NSObject()
        weak var object: NSObject?
        for _ in 0..<100 {
            do {
                let lock = OSAllocatedUnfairLock(uncheckedState: (NSObject(), keeper))
                object = lock.withLockUnchecked { $0.0 }
                #expect(object != nil)
            }
            #expect(object == nil)
        }
        #expect(keeper.description.isEmpty == false)
    }

    @Test("An error leaves the lock free")
    func error() {
        let lock = OSAllocatedUnfairLock(initialState: 1)
        #expect(throws: CancellationError.self) { try lock.withLock { _ in throw CancellationError() } }
        #expect(lock.withLockIfAvailable { $0 } == 1)
    }

    @Test("Releasing a free lock ends the program")
    func unbalanced() async {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            var lock = os_unfair_lock()
            os_unfair_lock_unlock(&lock)
        }
    }
}

/// Counts under the plain lock.
private final class UnfairCounter: @unchecked Sendable {
    // Sendable because the value is only touched while the lock is held.
    private let lock = UnsafeMutablePointer<os_unfair_lock>.allocate(capacity: 1)
    private var number = 0

    init() { lock.initialize(to: os_unfair_lock_s()) }
    deinit { lock.deallocate() }

    func count() {
        os_unfair_lock_lock(lock)
        number += 1
        os_unfair_lock_unlock(lock)
    }

    var value: Int {
        os_unfair_lock_lock(lock)
        defer { os_unfair_lock_unlock(lock) }
        return number
    }
}
