// How long a callback lasts: until it has returned, every exclusive control asked for in it has finished and every Task
// started in it has ended.

internal import AssetsOS

/// A token that a callback's Tasks inherit and its requests for exclusive control hold. Its end is the callback's end.
final class CallbackScope: Sendable {
    /// The callback that the running code belongs to.
    @TaskLocal static var current: CallbackScope?

    private let ended: @Sendable () -> Void

    private init(ended: @escaping @Sendable () -> Void) { self.ended = ended }

    deinit { ended() }

    /// Runs a callback, and `ended` with its result when the callback's end has come.
    ///
    /// - Parameter ended: Runs once, on any thread, perhaps inside the Swift runtime: it must not block.
    static func run<Result: Sendable>(
        _ callback: () -> Result, ended: @escaping @Sendable (Result) -> Void
    ) {
        let result = Guarded<Result?>(nil)
        let scope = CallbackScope {
            if let value = result.withLock({ $0 }) { ended(value) }
        }
        let value = $current.withValue(scope, operation: callback)
        result.withLock { $0 = value }
        withExtendedLifetime(scope) {}
    }

    /// Runs code as a part of the callback that `scope` stands for.
    static func resume(_ scope: CallbackScope?, _ body: () -> Void) {
        $current.withValue(scope, operation: body)
    }
}

/// Takes a value to the one other thread that uses it from then on.
///
/// `@unchecked Sendable`: whoever makes one gives the value away, and it is used on one serial queue only.
struct HandedOver<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
