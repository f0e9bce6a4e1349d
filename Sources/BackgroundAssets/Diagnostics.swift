// The few lines that the framework has to say where there is no caller to tell.

internal import AssetsOS
internal import Foundation

/// Lines on standard error.
enum Diagnostics {
    private static let warned = Guarded(Set<ObjectIdentifier>())

    static func warn(_ text: String) {
        FileHandle.standardError.write(Data("BackgroundAssets: \(text)\n".utf8))
    }

    /// Warns once of a delegate whose class inherits its conformance: what only the subclass implements is not seen.
    static func checkConformance(of delegate: any BADownloadManagerDelegate) {
        guard let parent = inheritedConformance(of: delegate) else { return }
        let type = type(of: delegate)
        guard warned.withLock({ $0.insert(ObjectIdentifier(type)).inserted }) else { return }
        warn(
            "\(type) inherits its conformance to BADownloadManagerDelegate from \(parent); a delegate method that only "
                + "the subclass has is not called: write it, empty, in \(parent) and override it")
    }

    /// The superclass that already conforms.
    static func inheritedConformance(of delegate: any BADownloadManagerDelegate) -> String? {
        guard let parent = Mirror(reflecting: delegate).superclassMirror?.subjectType,
            parent is any BADownloadManagerDelegate.Type
        else { return nil }
        return "\(parent)"
    }
}
