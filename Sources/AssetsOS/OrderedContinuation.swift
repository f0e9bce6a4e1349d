#if TSAN
    internal import CLinux

    // A continuation that is resumed before it is awaited orders what both threads do, but the runtime tells
    // ThreadSanitizer only of one that is resumed later. These two take the place of the standard library's and tell it.

    package func withCheckedContinuation<T>(
        isolation: isolated (any Actor)? = #isolation, function: String = #function,
        _ body: (CheckedContinuation<T, Never>) -> Void
    ) async -> sending T {
        let value = await _Concurrency.withCheckedContinuation(isolation: isolation, function: function, body)
        tellOfResumption()
        return value
    }

    package func withCheckedThrowingContinuation<T>(
        isolation: isolated (any Actor)? = #isolation, function: String = #function,
        _ body: (CheckedContinuation<T, any Error>) -> Void
    ) async throws -> sending T {
        defer { tellOfResumption() }
        return try await _Concurrency.withCheckedThrowingContinuation(
            isolation: isolation, function: function, body)
    }

    /// Whoever resumes a continuation has told of it with the address of its task.
    private func tellOfResumption() {
        withUnsafeCurrentTask { task in
            guard let task else { return }
            __tsan_acquire(unsafeBitCast(task, to: UnsafeMutableRawPointer.self))
        }
    }
#endif
