// The rule of the one progress bar: app, installation and essential assets as one item.

/// The fraction of an installation; it never goes back.
///
/// Shares: fetching the archive, unpacking, manifest and extension, essential assets. The essential share is first
/// reckoned with BAEssentialDownloadAllowance and with the real sizes once the extension has answered. How much essential
/// assets there are is written in the archive: until it is unpacked it may fill half of the bar, or nothing were left for
/// them.
package struct InstallProgress: Hashable, Sendable {
    private static let unpackedWeight = 0.05
    private static let askedWeight = 0.02
    private static let archiveShareMax = 0.5

    private var archiveExpected: Int64
    private var archiveReceived: Int64 = 0
    private var isUnpacked = false
    private var isAsked = false
    private var essentialExpected: Int64 = 0
    private var essentialReceived: Int64 = 0
    private var best = 0.0

    /// `archiveExpected`: bytes of the archive that has to be fetched, 0 for a local one.
    package init(archiveExpected: Int64 = 0) { self.archiveExpected = archiveExpected }

    package mutating func archive(received: Int64, expected: Int64) {
        archiveExpected = max(expected, received)
        archiveReceived = received
    }

    /// `allowance`: BAEssentialDownloadAllowance.
    package mutating func unpacked(allowance: Int64) {
        isUnpacked = true
        archiveReceived = archiveExpected
        essentialExpected = max(0, allowance)
    }

    /// `essentialBytes`: the sum of the sizes that the extension answered.
    package mutating func asked(essentialBytes: Int64) {
        isAsked = true
        essentialExpected = max(0, essentialBytes)
    }

    package mutating func essential(received: Int64) { essentialReceived = min(received, essentialExpected) }

    package mutating func finished() { best = 1 }

    /// 0 to 1.
    package mutating func fraction() -> Double {
        let fixed = (isUnpacked ? Self.unpackedWeight : 0) + (isAsked ? Self.askedWeight : 0)
        let value = fixed + transferredShare * (1 - Self.unpackedWeight - Self.askedWeight)
        best = max(best, min(value, best == 1 ? 1 : 0.999))
        return best
    }

    /// The part of what has to be transferred that is here, 0 to 1.
    private var transferredShare: Double {
        let archive = Self.ratio(archiveReceived, archiveExpected)
        guard isUnpacked else { return archive * Self.archiveShareMax }
        let essential = essentialExpected > 0 ? Self.ratio(essentialReceived, essentialExpected) : (isAsked ? 1 : 0)
        guard archiveExpected > 0 else { return essential }
        let bytes = Double(archiveExpected) / (Double(archiveExpected) + Double(essentialExpected))
        // What the bar has shown is not taken back.
        let share = max(bytes, Self.archiveShareMax)
        return archive * share + essential * (1 - share)
    }

    private static func ratio(_ part: Int64, _ whole: Int64) -> Double {
        whole > 0 ? Double(part) / Double(whole) : 0
    }

    package var received: Int64 { archiveReceived + essentialReceived }
    package var expected: Int64 { archiveExpected + essentialExpected }
}
