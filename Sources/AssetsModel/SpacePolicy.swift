// How much of the device's disk downloads may take.

/// What a file system has, in bytes.
package struct SpaceView: Hashable, Sendable {
    /// What an ordinary user may still write.
    package var free: Int64
    package var total: Int64

    package init(free: Int64, total: Int64) {
        self.free = free
        self.total = total
    }
}

/// The rule of space: some is always left to the device's user.
package struct SpacePolicy: Hashable, Sendable {
    /// What the device's user wants to be left free; nil for the default.
    package var ownFloor: Int64?

    package init(ownFloor: Int64? = nil) { self.ownFloor = ownFloor }

    /// Bytes that background downloads leave free: enough for the system to go on, and for its user to clean up.
    package func floor(total: Int64) -> Int64 {
        if let ownFloor { return ownFloor }
        let wanted = max(total / PolicyNumbers.spaceFloorShare, PolicyNumbers.spaceFloorMin)
        return min(wanted, PolicyNumbers.spaceFloorMax, total / PolicyNumbers.spaceFloorShareMax)
    }

    /// Bytes that a class leaves free. Somebody waits for what is not background: that goes down to the half.
    package func kept(for transferClass: TransferClass, total: Int64) -> Int64 {
        switch transferClass {
        case .background: floor(total: total)
        case .foreground, .essential: floor(total: total) / 2
        }
    }

    /// How many bytes are missing before `needed` more can be written; 0 when there is room.
    ///
    /// - Parameter promised: Bytes of other downloads that are sure to come and are not in `view` yet.
    package func shortage(
        of needed: Int64, for transferClass: TransferClass, in view: SpaceView, promised: Int64 = 0
    ) -> Int64 {
        let room = view.free - kept(for: transferClass, total: view.total)
        let (left, overflow) = room.subtractingReportingOverflow(promised)
        guard !overflow else { return .max }
        let (missing, tooMuch) = needed.subtractingReportingOverflow(left)
        return tooMuch ? .max : max(0, missing)
    }
}

extension Interruption {
    /// An attempt for which so many bytes are missing on the disk.
    package static func lackingSpace(_ missing: Int64, in view: SpaceView, hasAdvanced: Bool = false) -> Interruption {
        let (wanted, overflow) = view.free.addingReportingOverflow(missing)
        return Interruption(
            kind: .storage, reason: .space, hasAdvanced: hasAdvanced,
            failure: DownloadFailure(
                domain: .url, code: URLErrorCode.cannotWriteToFile,
                reason: "\(missing) more bytes must be free on the device's disk"),
            wantedFree: overflow ? .max : wanted)
    }
}
