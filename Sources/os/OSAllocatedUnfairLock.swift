// The lock of today's Swift sources, with the value it protects.

/// A lock that protects a value.
///
/// Copies are the same lock. Who holds it must not ask for it again.
public struct OSAllocatedUnfairLock<State>: @unchecked Sendable {
    // Sendable because the value is only reached while the lock is held.
    private final class Storage: ManagedBuffer<State, os_unfair_lock> {
        // The value is the buffer's own header and goes with it; the lock is four plain bytes.
        deinit { _ = withUnsafeMutablePointerToElements { $0.deinitialize(count: 1) } }
    }

    private let storage: ManagedBuffer<State, os_unfair_lock>

    /// Makes a lock around a value that the compiler does not check.
    public init(uncheckedState initialState: State) {
        storage = Storage.create(minimumCapacity: 1) { buffer in
            buffer.withUnsafeMutablePointerToElements { $0.initialize(to: os_unfair_lock()) }
            return initialState
        }
    }

    /// Makes a lock around a value.
    public init(initialState: State) where State: Sendable { self.init(uncheckedState: initialState) }

    /// Runs with the lock held.
    ///
    /// - Parameter body: Reads and changes the value.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    public func withLockUnchecked<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        try storage.withUnsafeMutablePointers { value, lock in
            os_unfair_lock_lock(lock)
            defer { os_unfair_lock_unlock(lock) }
            return try body(&value.pointee)
        }
    }

    /// Runs with the lock held.
    ///
    /// - Parameter body: Reads and changes the value.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws.
    public func withLock<Result: Sendable>(_ body: @Sendable (inout State) throws -> Result) rethrows -> Result {
        try withLockUnchecked(body)
    }

    /// Runs with the lock held, unless another holds it.
    ///
    /// - Returns: What the body returns; `nil` where it did not run.
    public func withLockIfAvailableUnchecked<Result>(
        _ body: (inout State) throws -> Result
    ) rethrows -> Result? {
        try storage.withUnsafeMutablePointers { value, lock in
            guard os_unfair_lock_trylock(lock) else { return nil }
            defer { os_unfair_lock_unlock(lock) }
            return try body(&value.pointee)
        }
    }

    /// Runs with the lock held, unless another holds it.
    ///
    /// - Returns: What the body returns; `nil` where it did not run.
    public func withLockIfAvailable<Result: Sendable>(
        _ body: @Sendable (inout State) throws -> Result
    ) rethrows -> Result? {
        try withLockIfAvailableUnchecked(body)
    }

    fileprivate var pointer: UnsafeMutablePointer<os_unfair_lock> {
        storage.withUnsafeMutablePointerToElements { $0 }
    }
}

extension OSAllocatedUnfairLock where State == Void {
    /// Makes a lock that protects what its user says.
    public init() { self.init(uncheckedState: ()) }

    /// Runs with the lock held.
    public func withLockUnchecked<Result>(_ body: () throws -> Result) rethrows -> Result {
        try withLockUnchecked { _ in try body() }
    }

    /// Runs with the lock held.
    public func withLock<Result: Sendable>(_ body: @Sendable () throws -> Result) rethrows -> Result {
        try withLockUnchecked { _ in try body() }
    }

    /// Runs with the lock held, unless another holds it.
    ///
    /// - Returns: What the body returns; `nil` where it did not run.
    public func withLockIfAvailableUnchecked<Result>(_ body: () throws -> Result) rethrows -> Result? {
        try withLockIfAvailableUnchecked { _ in try body() }
    }

    /// Runs with the lock held, unless another holds it.
    ///
    /// - Returns: What the body returns; `nil` where it did not run.
    public func withLockIfAvailable<Result: Sendable>(_ body: @Sendable () throws -> Result) rethrows -> Result? {
        try withLockIfAvailableUnchecked { _ in try body() }
    }

    /// Takes the lock; the same thread gives it back.
    @available(*, noasync, message: "Use withLock(_:): a task may go on in another thread")
    public func lock() { os_unfair_lock_lock(pointer) }

    /// Gives the lock back.
    @available(*, noasync, message: "Use withLock(_:): a task may go on in another thread")
    public func unlock() { os_unfair_lock_unlock(pointer) }

    /// Takes the lock unless another holds it.
    @available(*, noasync, message: "Use withLockIfAvailable(_:): a task may go on in another thread")
    public func lockIfAvailable() -> Bool { os_unfair_lock_trylock(pointer) }
}
