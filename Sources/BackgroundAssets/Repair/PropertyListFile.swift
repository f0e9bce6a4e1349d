// A property list as Foundation's preferences handle it: objects go in and come out without being translated.

internal import CRepair
internal import Foundation

/// An immutable dictionary of property list values, with objects of CoreFoundation for keys and values.
final class PropertyListObject: @unchecked Sendable {
    // Sendable because what it holds never changes.
    private let object: UnsafeRawPointer

    /// Takes over a reference.
    private init?(owning object: UnsafeRawPointer?) {
        guard let object else { return nil }
        self.object = object
    }

    deinit { crepair_release(object) }

    /// Reads a property list; `nil` where the bytes are none, or its root is no dictionary.
    convenience init?(_ bytes: Data) {
        self.init(
            owning: bytes.withUnsafeBytes { buffer in
                buffer.baseAddress.flatMap { crepair_list_read($0, buffer.count) }
            })
    }

    static func empty() -> PropertyListObject? { PropertyListObject(owning: crepair_list_empty()) }

    /// The list with another value, or without one.
    func setting(_ value: UnsafeRawPointer?, forKey key: UnsafeRawPointer) -> PropertyListObject? {
        PropertyListObject(owning: crepair_list_setting(object, key, value))
    }

    /// A retained value.
    func copyValue(forKey key: UnsafeRawPointer) -> UnsafeRawPointer? { crepair_list_copy_value(object, key) }

    /// A retained dictionary of the values of an array of keys, or of all.
    func copyValues(forKeys keys: UnsafeRawPointer?) -> UnsafeRawPointer? { crepair_list_copy_values(object, keys) }

    /// The list as the bytes of a file; `nil` where a value has no place in one.
    func encoded() -> Data? {
        var count = 0
        guard let bytes = crepair_list_write(object, &count) else { return nil }
        return Data(bytesNoCopy: bytes, count: count, deallocator: .free)
    }
}
