// Room on the disk for what a transfer receives.
internal import AssetsModel
internal import AssetsOS
internal import Glibc

extension TransferRun {
    /// Sets room aside for a file of so many bytes, 0 for an unknown number; what is missing when there is not enough.
    ///
    /// Only what the file does not have yet is asked for: a transfer that goes on takes nothing a second time.
    func takeRoom(for total: Int64) throws(SystemCallError) -> Interruption? {
        guard let file else { return nil }
        roomTaken = max(file.length, try file.allocated)
        guard total > 0 else { return try roomLacks() }
        let needed = total - roomTaken
        // Shorter than what is in memory on its way.
        guard needed >= PolicyNumbers.reservedSizeMin else { return nil }
        if let lacking = try lacking(needed) { return lacking }
        if try file.reserve(total: total) { roomTaken = total }
        return nil
    }

    /// What is missing for what comes until the next look; nil when there is room, or the file has it.
    func roomLacks() throws(SystemCallError) -> Interruption? {
        let needed = min(promisedBytes, PolicyNumbers.unknownSizeRoom)
        return needed > 0 ? try lacking(needed) : nil
    }

    private func lacking(_ needed: Int64) throws(SystemCallError) -> Interruption? {
        let space = try files.space()
        let view = SpaceView(free: space.free, total: space.total)
        let missing = spec.space.shortage(
            of: needed, for: spec.transferClass, in: view, promised: engine.promisedBytes(besides: number))
        return missing > 0 ? .lackingSpace(missing, in: view, hasAdvanced: plan?.hasAdvanced ?? false) : nil
    }

    /// Bytes that will come and have no room of their own yet.
    var promisedBytes: Int64 {
        guard let total = plan?.start?.total else { return 0 }
        return total > 0 ? max(0, total - max(length, roomTaken)) : PolicyNumbers.unknownSizeRoom
    }

    /// A failed system call on the file.
    func storageInterruption(_ error: SystemCallError) -> Interruption {
        let isFull = error.number == ENOSPC || error.number == EDQUOT
        // Where the file system says that there is room, a quota or something else holds it back: nobody can tell how
        // much is missing.
        if error.number == ENOSPC, let total = plan?.start?.total,
            let lacking = try? lacking(max(total - max(length, roomTaken), PolicyNumbers.reservedSizeMin))
        {
            return lacking
        }
        return Interruption(
            kind: .storage, reason: isFull ? .space : .volume, hasAdvanced: plan?.hasAdvanced ?? false,
            failure: DownloadFailure(
                domain: .url, code: URLErrorCode.cannotWriteToFile,
                reason: isFull ? "no space is left on the device" : "the file cannot be written: \(error)"))
    }
}
