// How a download stands that waits for its transfer, how the message of one that has ended, and what was given up.

extension Standing {
    // MARK: Waiting downloads

    /// What surrounds a download that has no transfer.
    package struct Surroundings {
        /// The app's gate is shut.
        package var isGateShut = false
        package var isOffline = false
        /// The service looks whether there is room on the disk.
        package var isSpaceWatched = false
        /// What its server was asked to be answered; nil where no question of it is open.
        package var question: String?
        /// Others of its app ask their servers' questions, and as many as may at once.
        package var isHeldByQuestions = false
        /// What the queue says of it.
        package var obstacle = TransferQueue.Obstacle.turn

        package init() {}
    }

    /// Of a download in state `waiting` without a transfer.
    package static func waiting(_ record: DownloadRecord, _ around: Surroundings, at now: Duration) -> Standing {
        if let question = around.question {
            return Standing(
                .download, heldBy: .challenge, question,
                release: "a delegate or the extension has answered; each has \(PolicyNumbers.challengeLimit.shown)")
        }
        if around.isHeldByQuestions {
            return Standing(
                .download, heldBy: .challenge, "other downloads of the app wait for an answer to a server",
                release: "one of them was answered")
        }
        if around.isGateShut, record.transferClass != .essential {
            return Standing(
                .download, heldBy: .essentialFirst, "the app's essential assets come first",
                release: "the app's gate opens")
        }
        if let time = record.notBefore, time > now { return paused(record, until: time, around) }
        return queued(record, around.obstacle)
    }

    /// A failure or something missing lets it wait until a time.
    private static func paused(_ record: DownloadRecord, until time: Duration, _ around: Surroundings) -> Standing {
        let lastTry = "without that it is tried a last time"
        let release =
            switch record.reason {
            case .offline where around.isOffline: "the device has a network; \(lastTry)"
            case .space where around.isSpaceWatched: "there is room on the device's disk; \(lastTry)"
            case .offline, .network, .certificate, .proxy, .portal: "the network changes or its pause is over"
            default: "its pause is over"
            }
        return Standing(.download, heldBy: record.reason, record.detail, release: release, latest: time)
    }

    private static func queued(_ record: DownloadRecord, _ obstacle: TransferQueue.Obstacle) -> Standing {
        let slice = "one of them ends, or has had its \(PolicyNumbers.transferSlice.shown) and goes behind it"
        return switch obstacle {
        case .places(let count):
            Standing(
                .download, heldBy: .concurrency,
                "all \(count) places for \(record.transferClass.pool) transfers are taken", release: slice)
        case .surplus(let count, let places):
            Standing(
                .download, heldBy: .concurrency,
                "\(count) transfers share the \(places) places for \(record.transferClass.pool) transfers",
                release: "fewer than \(places) of them are left")
        case .host(let host, let count):
            Standing(
                .download, heldBy: .concurrency, "\(count) transfers from \(host) run, as many as may", release: slice)
        case .turn:
            Standing(
                .download, heldBy: .concurrency, "others of the queue begin before it", release: "those have begun")
        }
    }

    // MARK: Messages

    /// What surrounds the message of a download that has ended.
    package struct MessageView {
        package var isGateShut = false
        /// nil while others are told first.
        package var stage: DeliveryRound.Stage?
        /// Why the extension may not run now.
        package var obstacle: (reason: Reason, detail: String, wait: Duration)?
        /// Delegates may answer until then; calendar clock.
        package var answerLimit: Duration?
        /// What the extension does instead; empty where it does nothing.
        package var work = ""

        package init() {}
    }

    /// Of a download that finished or failed, and whose message nobody has handled.
    package static func message(_ record: DownloadRecord, _ view: MessageView, at now: Duration) -> Standing {
        guard !view.isGateShut else {
            return Standing(
                .message, heldBy: .gate, "it is told when the app can be launched", release: "the app's gate opens")
        }
        return switch view.stage {
        case .withDelegates:
            Standing(
                .message, heldBy: .answer, "a process of the app has its message", release: "that process has answered",
                latest: view.answerLimit)
        case .inExtension:
            Standing(
                .message, heldBy: .answer, "the extension has its message",
                release: "its callback returns, or its runtime of the day is used up")
        case .pausing:
            Standing(
                .message, heldBy: .backoff, "\(record.detail); after \(PolicyNumbers.deliveriesMax) it is given up",
                release: "its pause is over, or a process of the app takes it", latest: record.notBefore)
        case .waitingForExtension: waitingForExtension(view, at: now)
        case .over, nil:
            Standing(
                .message, heldBy: .concurrency, "other messages of the app are told first",
                release: "those were handled")
        }
    }

    private static func waitingForExtension(_ view: MessageView, at now: Duration) -> Standing {
        guard let obstacle = view.obstacle else {
            let what = view.work.isEmpty ? "which is about to be told" : "which is in \(view.work)"
            return Standing(
                .message, heldBy: .concurrency, "its message waits for the extension, \(what)",
                release: "what was before it has returned, or a process of the app takes it")
        }
        let (release, latest) = release(of: obstacle.reason, in: obstacle.wait, at: now)
        return Standing(
            .message, heldBy: obstacle.reason, obstacle.detail,
            release: "\(release), or a process of the app takes it", latest: latest)
    }

    // MARK: Given up

    /// Of a message that nobody will be told of again.
    ///
    /// - Parameter path: The kept file, absolute; nil for a download that failed.
    package static func kept(_ message: GivenUpMessage, path: String?) -> Standing {
        let file = path.map { "; its file is kept: \($0)" } ?? "; it had failed, so there is no file"
        let release = path == nil ? "the app schedules it again" : "the app moves the file, or schedules it again"
        var result = Standing(.keptFile, heldBy: .crash, message.detail + file, release: release)
        (result.identifier, result.download) = (message.identifier, message.id)
        return result
    }
}

/// A message that was closed because the extension died of it every time. Its file, if there is one, stays.
package struct GivenUpMessage: Hashable, Sendable {
    /// Unique identifier of the download.
    package var id: String
    package var app: String
    package var identifier: String
    /// Calendar clock.
    package var time: Duration
    /// Where the file is, below the device directory, and its inode; nil for a download that failed.
    package var file: KeptFile?
    /// A sentence for people.
    package var detail: String

    package struct KeptFile: Hashable, Sendable {
        package var path: String
        package var inode: UInt64

        package init(path: String, inode: UInt64) {
            self.path = path
            self.inode = inode
        }
    }

    package init(id: String, app: String, identifier: String, time: Duration, file: KeptFile?, detail: String) {
        self.id = id
        self.app = app
        self.identifier = identifier
        self.time = time
        self.file = file
        self.detail = detail
    }
}
