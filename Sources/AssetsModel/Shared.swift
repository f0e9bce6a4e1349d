// Large values that are copied often and changed hardly ever.

/// Keeps a value in one place for all copies of what it is part of: a copy takes a reference, not each of the value's own.
///
/// It is a value like any other: who changes it has one of its own from then on.
@propertyWrapper
package struct Shared<Value: Hashable & Sendable>: Hashable, Sendable {
    @usableFromInline
    package final class Storage: Sendable {
        @usableFromInline package let value: Value
        @inlinable package init(_ value: Value) { self.value = value }
    }

    @usableFromInline package var storage: Storage

    @inlinable package init(wrappedValue: Value) { storage = Storage(wrappedValue) }

    @inlinable package var wrappedValue: Value {
        get { storage.value }
        set { storage = Storage(newValue) }
    }

    package static func == (left: Shared, right: Shared) -> Bool {
        left.storage === right.storage || left.storage.value == right.storage.value
    }

    package func hash(into hasher: inout Hasher) { storage.value.hash(into: &hasher) }
}
