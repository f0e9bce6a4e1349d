// A file as the server shows it at one request: how large it is and what its version is called.
internal import Glibc

/// A version of a file, with the faults that change it.
struct FileVersion: Equatable {
    private static let day: Int64 = 86_400

    var size: Int64
    /// With its quotes; nil where versions have no tag.
    var tag: String?
    /// As in the field; nil where versions have no date.
    var modified: String?
    /// SHA-256 of all of it, in Base64, where it is told.
    var digest: String?
    var change = ByteChange()

    init(size: Int64, tag: String?, modified: String?) {
        self.size = size
        self.tag = tag
        self.modified = modified
    }

    init(_ info: stat, faults: AppliedFaults) {
        self.init(size: Int64(info.st_size), tag: Self.entityTag(info), modified: nil)
        var seconds = Int64(info.st_mtim.tv_sec)
        if let limit = faults[.wrongSize] { size = min(size, limit) }
        if faults.has(.changing) {
            change.mask = UInt8(truncatingIfNeeded: faults.version)
            if faults.version > 0 { tag = "\(tag?.dropLast() ?? "\"")-\(faults.version)\"" }
            // Each version is a second younger than the one before; the first is a day old, so that none is of today.
            seconds += Int64(faults.version) - Self.day
        } else if faults.has(.dateOnly) {
            seconds -= Self.day
        }
        modified = HTTPDate.format(seconds)
        change.inverted = faults[.corrupt]
        rename(faults)
    }

    private mutating func rename(_ faults: AppliedFaults) {
        if faults.has(.sameTag) { (tag, modified) = ("\"same\"", nil) }
        if faults.has(.weakTag) { (tag, modified) = (tag.map { "W/" + $0 }, nil) }
        if faults.has(.dateOnly) { tag = nil }
        if faults.has(.noValidator) { (tag, modified) = (nil, nil) }
    }

    /// Changes whenever the file does: replaced (inode), grown (size) or written (time).
    private static func entityTag(_ info: stat) -> String {
        let parts = [
            UInt64(info.st_ino), UInt64(bitPattern: Int64(info.st_size)),
            UInt64(bitPattern: Int64(info.st_mtim.tv_sec)), UInt64(bitPattern: Int64(info.st_mtim.tv_nsec)),
        ]
        return "\"" + parts.map { String($0, radix: 16) }.joined(separator: "-") + "\""
    }

    /// Whether an If-Range means this version: a weak tag never does.
    func isMeant(byIfRange validator: String) -> Bool {
        validator == tag && !validator.hasPrefix("W/") || validator == modified
    }

    /// Whether a list of tags, as in If-None-Match, names this version.
    func isNamed(in list: String) -> Bool {
        list.split(separator: ",").contains { item in
            var item = item.drop { $0 == " " }
            while item.last == " " { item.removeLast() }
            if item == "*" { return true }
            return tag.map { Self.opaque(item) == Self.opaque($0[...]) } ?? false
        }
    }

    private static func opaque(_ tag: Substring) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag }
}
