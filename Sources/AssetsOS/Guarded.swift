#if TSAN
    internal import Glibc
    /// A value behind a lock. `pthread_mutex` because ThreadSanitizer cannot see into `Synchronization.Mutex`.
    package final class Guarded<Value>: @unchecked Sendable {
        private let lock: UnsafeMutablePointer<pthread_mutex_t>
        // Behind a pointer, because an access to a generic class's property is reported at the address of the object, where
        // every caller reads its type before it has the lock.
        private let value: UnsafeMutablePointer<Value>
        package init(_ value: consuming sending Value) {
            lock = .allocate(capacity: 1)
            lock.initialize(to: pthread_mutex_t())
            pthread_mutex_init(lock, nil)
            self.value = .allocate(capacity: 1)
            self.value.initialize(to: value)
        }
        deinit {
            pthread_mutex_destroy(lock)
            lock.deallocate()
            value.deinitialize(count: 1)
            value.deallocate()
        }
        package func withLock<R, E: Error>(_ body: (inout sending Value) throws(E) -> sending R) throws(E) -> sending R
        {
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
            return try body(&value.pointee)
        }
        /// nil when somebody else has the lock.
        package func withLockIfAvailable<R, E: Error>(
            _ body: (inout sending Value) throws(E) -> sending R
        ) throws(E) -> sending R? {
            guard pthread_mutex_trylock(lock) == 0 else { return nil }
            defer { pthread_mutex_unlock(lock) }
            return try body(&value.pointee)
        }
    }
#else
    internal import Synchronization
    /// A value behind a lock.
    package final class Guarded<Value>: Sendable {
        private let mutex: Mutex<Value>
        package init(_ value: consuming sending Value) { mutex = Mutex(value) }
        package func withLock<R, E: Error>(_ body: (inout sending Value) throws(E) -> sending R) throws(E) -> sending R
        {
            try mutex.withLock(body)
        }
        /// nil when somebody else has the lock.
        package func withLockIfAvailable<R, E: Error>(
            _ body: (inout sending Value) throws(E) -> sending R
        ) throws(E) -> sending R? {
            try mutex.withLockIfAvailable(body)
        }
    }
#endif
