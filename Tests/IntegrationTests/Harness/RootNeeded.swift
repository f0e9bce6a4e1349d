// Tests that need what only root can do: Tests/Fixtures/RootHelper does it for them.
import Foundation
import RootHelperClient
import Testing

extension Trait where Self == ConditionTrait {
    /// A test for which the root helper makes something. Where that cannot be had it is left out, which is said loudly.
    static func needs(_ service: HelperService, at place: SourceLocation = #_sourceLocation) -> Self {
        .enabled("the root helper's \(service.rawValue)", sourceLocation: place) {
            guard let reason = HelperConnection.whyMissing(service) else { return true }
            let line =
                "\n*** NOT RUN, for want of \(service.rawValue): \(place.fileID):\(place.line): \(reason) ***\n\n"
            FileHandle.standardError.write(Data(line.utf8))
            return false
        }
    }
}
