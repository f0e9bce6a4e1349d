// What stands in the place of CoreFoundation's preferences, for suites that are app groups of this process.

internal import AssetsOS
internal import Foundation

extension GroupDefaults {
    private static let suites = Guarded<[String: GroupDefaults]>([:])

    /// The preferences of a declared group; `nil` for all other suites, which stay what they are.
    static func suite(_ application: UnsafeRawPointer) -> GroupDefaults? {
        let group = Unmanaged<NSString>.fromOpaque(application).takeUnretainedValue().description
        if let known = suites.withLock({ $0[group] }) { return known }
        guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) else {
            return nil
        }
        return suites.withLock { suites in
            let found = suites[group] ?? GroupDefaults(container: container.path, group: group)
            suites[group] = found
            return found
        }
    }
}

/// CFPreferencesCopyAppValue.
@_cdecl("backgroundassets_defaults_copy")
package func copyGroupDefault(
    _ application: UnsafeRawPointer, _ key: UnsafeRawPointer, _ value: UnsafeMutablePointer<UnsafeRawPointer?>
) -> Bool {
    guard let suite = GroupDefaults.suite(application) else { return false }
    value.pointee = suite.copyValue(forKey: key)
    return true
}

/// CFPreferencesSetAppValue.
@_cdecl("backgroundassets_defaults_set")
package func setGroupDefault(
    _ application: UnsafeRawPointer, _ key: UnsafeRawPointer, _ value: UnsafeRawPointer?
) -> Bool {
    guard let suite = GroupDefaults.suite(application) else { return false }
    suite.set(value, forKey: key)
    return true
}

/// CFPreferencesCopyMultiple.
@_cdecl("backgroundassets_defaults_copy_multiple")
package func copyGroupDefaults(
    _ application: UnsafeRawPointer, _ keys: UnsafeRawPointer?, _ list: UnsafeMutablePointer<UnsafeRawPointer?>
) -> Bool {
    guard let suite = GroupDefaults.suite(application) else { return false }
    list.pointee = suite.copyValues(forKeys: keys)
    return true
}

/// CFPreferencesAppSynchronize.
@_cdecl("backgroundassets_defaults_synchronize")
package func synchronizeGroupDefaults(
    _ application: UnsafeRawPointer, _ isDone: UnsafeMutablePointer<Bool>
) -> Bool {
    guard let suite = GroupDefaults.suite(application) else { return false }
    isDone.pointee = suite.synchronize()
    return true
}
