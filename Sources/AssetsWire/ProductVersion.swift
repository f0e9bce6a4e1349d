// The version of service and tools: one number for all.

/// Which release this is.
package enum ProductVersion {
    package static let current = "0.1.0"
}
