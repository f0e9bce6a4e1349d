// Builds with a sanitizer, and what cannot be measured in them.
import Foundation
import Testing

/// What this build is instrumented with; scripts/run-tests says it to the compiler.
enum Sanitizer {
    #if TSAN
        /// As the compiler calls it; nil in a build without.
        static let name: String? = "thread"
    #elseif SANITIZED
        static let name: String? = "address"
    #else
        static let name: String? = nil
    #endif
}

extension Trait where Self == ConditionTrait {
    /// A test whose figures mean nothing under a sanitizer. Leaving it out there is said loudly.
    static func plainOnly(_ reason: String, at place: SourceLocation = #_sourceLocation) -> Self {
        .enabled("\(reason)", sourceLocation: place) {
            guard let name = Sanitizer.name else { return true }
            let line = "\n*** NOT RUN under the \(name) sanitizer: \(place.fileID):\(place.line): \(reason) ***\n\n"
            FileHandle.standardError.write(Data(line.utf8))
            return false
        }
    }
}
