// What stands in the place of Foundation's own functions on files.

internal import CRepair
internal import Foundation

extension FileManager {
    /// Stands in the place of `replaceItemAt(_:withItemAt:backupItemName:options:)`.
    @_silgen_name("backgroundassets_replace_item_at")
    package func repairedReplaceItemAt(
        _ originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String?, options: ItemReplacementOptions
    ) throws -> URL? {
        if RepairProbe.answers(originalItemURL) { return originalItemURL }
        try Replacement(
            original: originalItemURL, new: newItemURL, files: self, backupName: backupItemName, options: options
        ).perform()
        return originalItemURL
    }

    /// Stands in the place of `replaceItem(at:withItemAt:backupItemName:options:)`.
    @_silgen_name("backgroundassets_replace_item")
    package func repairedReplaceItem(
        at originalItemURL: URL, withItemAt newItemURL: URL, backupItemName: String?, options: ItemReplacementOptions
    ) throws -> URL? {
        try repairedReplaceItemAt(
            originalItemURL, withItemAt: newItemURL, backupItemName: backupItemName, options: options)
    }
}

/// Stands in the place of `Data.init(contentsOf:options:)`: what may be mapped is mapped, so that a large file does not
/// count as memory of the process.
@_silgen_name("backgroundassets_read_data")
package func repairedReadData(_ url: URL, _ options: Data.ReadingOptions) throws -> Data {
    guard options.contains(.mappedIfSafe), !options.contains(.alwaysMapped), MappableFile.isSafe(url) else {
        if options.contains(.mappedIfSafe), RepairProbe.answers(reading: url) { return RepairProbe.readAnswer }
        return try originalReadData(url, options)
    }
    return try originalReadData(url, options.subtracting(.mappedIfSafe).union(.alwaysMapped))
}

@_silgen_name("backgroundassets_original_read_data")
private func originalReadData(_ url: URL, _ options: Data.ReadingOptions) throws -> Data

/// Which files are mapped.
private enum MappableFile {
    /// Bytes from which on mapping is worth its effort.
    static let sizeMin = 64 << 10

    static func isSafe(_ url: URL) -> Bool { url.isFileURL && crepair_can_map(url.path, Int64(sizeMin)) }
}
