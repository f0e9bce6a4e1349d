// Errors as people read them.
import BackgroundAssets

extension Error {
    /// What happened and, where the error knows it, what helps.
    public var sentence: String {
        let error = self as NSError
        return [error.localizedFailureReason ?? error.localizedDescription, error.localizedRecoverySuggestion]
            .compactMap(\.self).joined(separator: "; ")
    }
}
