// Replaces a file in a source that imports Foundation and nothing else.
import Foundation

func replaceWithFoundation(_ original: URL, by new: URL) throws {
    _ = try FileManager.default.replaceItemAt(original, withItemAt: new)
}
