// What a received file comes to, compared with what was said of it.
internal import AssetsModel
internal import AssetsOS

extension TransferRun {
    func follow(_ file: any AppendableFile, _ check: TransferPlan.DigestCheck) -> DigestFollower {
        let (engine, number) = (engine, number)
        return DigestFollower(check, of: file) { engine.hashLater(number, $0, $1) }
    }

    /// All is written. Where nothing came in this attempt, all is read.
    func check(_ check: TransferPlan.DigestCheck, length: Int64) {
        guard let file else { preconditionFailure("bytes of no file are to be compared") }
        phase = .checking(length: length)
        if follower?.check != check { follower = follow(file, check) }
        // A long read need not hold up the disk.
        if follower?.isFarBehind(length) == true { sync() }
        compare(length)
    }

    private func compare(_ length: Int64) {
        if let digest = follower?.digest(of: length) {
            phase = .running
            perform { $0.checked(digest) }
        } else {
            follower?.follow(upTo: length)
        }
    }

    /// A job of the hash is done.
    func hashed(_ failure: SystemCallError?) {
        guard !isOver, let follower else { return }
        if follower.done() { writes?.hashed() }
        if let failure {
            stopListening()
            return drain { $0.end(.interrupted($0.storageInterruption(failure))) }
        }
        switch phase {
        case .running, .draining:
            writes?.lendToFollower()
            follower.follow(upTo: length)
        case .checking(let length):
            return compare(length)
        case .closing, .ended:
            return
        }
        if case .running = phase { goOnReceiving() }
    }
}
