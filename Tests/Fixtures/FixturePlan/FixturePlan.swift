// What the tests tell the sample app and its extension, and what the two tell the tests.
package import Foundation

/// The manifest of the sample app: what its extension answers, and how it behaves.
package struct FixturePlan: Codable, Hashable, Sendable {
    /// A download to make.
    package struct Item: Codable, Hashable, Sendable {
        package var identifier: String
        package var url: String
        package var size = 0
        package var essential = false
        package var priority = 0
        /// nil: the group of the bundle.
        package var group: String?
        /// What the file must come to.
        package var sha256: Data?

        package init(
            _ identifier: String, url: String, size: Int = 0, essential: Bool = false, priority: Int = 0,
            group: String? = nil, sha256: Data? = nil
        ) {
            self.identifier = identifier
            self.url = url
            self.size = size
            self.essential = essential
            self.priority = priority
            self.group = group
            self.sha256 = sha256
        }
    }

    /// What `downloads(for:manifestURL:extensionInfo:)` does.
    package enum Request: String, Codable, Sendable {
        case answer
        case crash
        case hang
        /// Hangs the first time, answers from then on.
        case hangOnce
        /// Waits for the turnstile, then answers.
        case wait
        /// Gives the system's queues more work than they have threads, then answers.
        case crowd
        /// Schedules `followUps` with the manager, notes what comes of it, and answers.
        case schedule
        /// Answers, and adds `followUps` to the set that it has answered.
        case addsLater
    }

    /// What `backgroundDownload(_:finishedWithFileURL:)` does.
    package enum Finished: String, Codable, Sendable {
        /// Moves the file to `Assets/<identifier>` in the container.
        case move
        /// Moves it to the temporary folder and back, then changes mode, time and attribute of what it moved, and notes
        /// what came of all that.
        case handle
        /// The same as `move` inside exclusive control.
        case moveExclusively
        /// The same inside exclusive control, after waiting there for the turnstile.
        case holdExclusively
        /// The same after waiting for the turnstile.
        case hold
        /// The same after entering exclusive control `entries` times.
        case enter
        /// Deletes the file.
        case delete
        case leave
        case hang
        /// Ends the process with status 3.
        case exit
    }

    /// A moment in the life of the extension.
    package enum Death: String, Codable, Sendable, CaseIterable {
        /// It is being made, before anybody has called it.
        case made
        /// In each of the callbacks: as it begins, when it has done its work, and around its return.
        case requestBegins, requestIsDone, requestReturns
        case finishedBegins, finishedIsDone, finishedReturns
        case failedBegins, failedIsDone, failedReturns
        case challengeBegins, challengeIsDone, challengeReturns
        /// Inside exclusive control that the callback has asked for.
        case controlled
    }

    package var downloads: [Item] = []
    package var request = Request.answer
    package var finished = Finished.move
    /// Where it is killed, once each.
    package var dies: [Death] = []
    /// Deaths by abort() in the callback of finished downloads before the first that returns.
    package var crashes = 0
    /// Scheduled in the callback of the first finished download, or in the content request where that says so.
    package var followUps: [Item] = []
    /// Started in the foreground in that callback, which must be refused.
    package var foregrounds: [Item] = []
    /// Scheduled and cancelled again in that callback, between two looks at what there is.
    package var passing: [Item] = []
    /// Of exclusive control, for `Finished.enter`.
    package var entries = 0
    /// What is not among `downloads` is passed over in the callback of finished downloads.
    package var ignoresUnknown = false
    /// Failed essential downloads are scheduled anew with `removingEssential()`.
    package var requeues = false
    /// The extension sets a delegate of its own.
    package var setsDelegate = false
    /// Answers to servers that ask, in turn; the last one for good.
    package var challenges: [FixtureAnswer] = []
    /// That delegate looks for its file, and moves it, inside exclusive control only.
    package var isDelegateExclusive = false
    /// Lines for standard output, at each content request.
    package var prints: [String] = []
    /// Messages that the extension sends to the service beside its manager, at each content request. It notes the answers.
    package var calls: [String] = []

    /// A text that the extension logs, as a private and as a public value, at each content request.
    package var logs: String?
    /// Numbers that the extension writes into the group's preferences when a download has finished.
    package var numbers = 0

    package init(downloads: [Item] = []) { self.downloads = downloads }

    /// As a manifest.
    package func encoded() throws -> Data { try JSONEncoder().encode(self) }
}

/// Tells this process from all others.
package let thisRun = Int32.random(in: 1...Int32.max)

/// One line that app or extension writes: what happened there.
package struct FixtureRecord: Codable, Hashable, Sendable {
    /// "request", "finished", "failed", "began", "paused", "progress", "control", "released", "scheduled", "foreground",
    /// "listed", "cancelled", "deleted", "entering", "handled", "challenge", or "reply" to a command.
    package var event: String
    /// Of the process that wrote it, by chance: in its namespace every extension is process 1.
    package var run = thisRun
    /// The command that is answered.
    package var command: String?
    package var request: Int?
    package var path: String?
    /// Bytes of the manifest or file that were found at `path`.
    package var bytes: Int?
    package var remaining: Int?
    package var essentialRemaining: Int?
    package var download: Listed?
    package var downloads: [Listed]?
    package var written: Int64?
    package var total: Int64?
    package var expected: Int64?
    /// Of an error.
    package var domain: String?
    package var code: Int?
    package var reason: String?
    /// The error says its reason under NSLocalizedFailureReason.
    package var hasReason: Bool?
    package var acquired: Bool?
    package var challenge: Challenge?
    package var onMainThread: Bool?
    /// It was moved to its place.
    package var moved: Bool?
    /// The manifest can be opened for writing.
    package var isWritable: Bool?
    /// The extension was made on the main actor.
    package var madeOnMain: Bool?
    /// Records of this kind that this process wrote, with this one.
    package var count: Int?
    /// Milliseconds.
    package var elapsed: Int?
    /// What the command is to find out.
    package var value: String?
    /// Of the delegate that heard it, or of the queue.
    package var label: String?
    /// A delegate heard it, not an entry point.
    package var byDelegate: Bool?
    /// A number from the group's preferences, or how many there are.
    package var number: Int?
    /// The identifier of the process's bundle, and the executable's name that its property list gives.
    package var bundle: String?
    package var executable: String?
    /// The texts of files, by their names, or of answers, by their calls.
    package var texts: [String: String]?
    /// The group's container, as the process knows it.
    package var container: String?

    /// A download as its object shows it.
    package struct Listed: Codable, Hashable, Sendable {
        package var identifier: String
        package var uniqueIdentifier: String
        package var state: Int
        package var essential: Bool
        package var priority: Int
        /// It is a BAURLDownload, and one of exactly that class.
        package var isURLDownload: Bool
        package var isExactlyURLDownload: Bool

        package init(
            identifier: String, uniqueIdentifier: String, state: Int, essential: Bool, priority: Int,
            isURLDownload: Bool, isExactlyURLDownload: Bool
        ) {
            self.identifier = identifier
            self.uniqueIdentifier = uniqueIdentifier
            self.state = state
            self.essential = essential
            self.priority = priority
            self.isURLDownload = isURLDownload
            self.isExactlyURLDownload = isExactlyURLDownload
        }
    }

    package init(_ event: String) { self.event = event }

    /// As one line of JSON.
    package func line() throws -> String { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }

    package init(line: String) throws {
        self = try JSONDecoder().decode(FixtureRecord.self, from: Data(line.utf8))
    }

    /// Notes an error.
    package mutating func note(_ error: any Error) {
        let error = error as NSError
        domain = error.domain
        code = error.code
        reason = error.localizedFailureReason ?? error.localizedDescription
        hasReason = error.userInfo[NSLocalizedFailureReasonErrorKey] is String
    }
}

/// Names that app, extension and tests share.
package enum FixtureName {
    package static let log = "extension.jsonl"
    package static let plan = "plan.json"
    package static let crashes = "crashes"
    package static let hung = "hung"
    package static let challenges = "challenges"
    package static let assets = "Assets"
    /// Numbers in the group's preferences.
    package static let fromApp = "from app"
    package static let fromExtension = "from extension"
    /// Key in the property list of the extension of 2022.
    package static let items = "FixtureItems"
    /// A pipe: one byte in it lets one waiter pass.
    package static let turnstile = "turnstile"
    /// Who went into exclusive control and out of it.
    package static let entries = "entries"
}
