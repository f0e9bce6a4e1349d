// Messages of org.backgroundassets.Manager; the interface file explains them.

/// `org.backgroundassets.Manager`.
package enum ManagerInterface {
    package static let interface = "org.backgroundassets.Manager"

    /// kind is "session" (first, carries the session), "began", "paused", "progress", "challenge", "failed", "finished",
    /// "control-granted" or "control-refused". number is 0 unless an Answer is expected, or AnswerChallenge of a challenge.
    package struct Event: Codable, Hashable, Sendable {
        package var kind: String
        package var number: Int64
        package var session: String?
        package var download: WireDownload?
        /// Bytes since the last progress event, so far, and expected (0 when unknown).
        package var written: Int64?
        package var totalWritten: Int64?
        package var totalExpected: Int64?
        package var failure: WireFailure?
        /// Where a finished file lies.
        package var path: String?
        package var ticket: Int64?
        package var challenge: WireChallenge?

        package init(
            kind: String, number: Int64, session: String? = nil, download: WireDownload? = nil, written: Int64? = nil,
            totalWritten: Int64? = nil, totalExpected: Int64? = nil, failure: WireFailure? = nil, path: String? = nil,
            ticket: Int64? = nil, challenge: WireChallenge? = nil
        ) {
            self.kind = kind
            self.number = number
            self.session = session
            self.download = download
            self.written = written
            self.totalWritten = totalWritten
            self.totalExpected = totalExpected
            self.failure = failure
            self.path = path
            self.ticket = ticket
            self.challenge = challenge
        }

        private enum CodingKeys: String, CodingKey {
            case kind
            case number
            case session
            case download
            case written
            case totalWritten = "total_written"
            case totalExpected = "total_expected"
            case failure
            case path
            case ticket
            case challenge
        }
    }

    /// Developer Mode only: this connection speaks for that installed app.
    package enum Declare: WireMethod {
        package static let name = "org.backgroundassets.Manager.Declare"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String

            package init(app: String) {
                self.app = app
            }
        }
        package typealias Reply = Nothing
    }

    /// An app group and the folder of its container: an absolute path.
    package struct Group: Codable, Hashable, Sendable {
        package var identifier: String
        package var container: String

        package init(identifier: String, container: String) {
            self.identifier = identifier
            self.container = container
        }
    }

    /// For whom this connection speaks. role is "app" or "extension"; groups are those of the app, or those
    /// that the extension shares with it. root is the device's folder.
    package enum Identity: WireMethod {
        package static let name = "org.backgroundassets.Manager.Identity"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var app: String
            package var role: String
            package var groups: [Group]
            package var root: String

            package init(app: String, role: String, groups: [Group], root: String) {
                self.app = app
                self.role = role
                self.groups = groups
                self.root = root
            }
        }
    }

    /// Queues a background download.
    package enum Schedule: WireMethod {
        package static let name = "org.backgroundassets.Manager.Schedule"
        package struct Parameters: Codable, Hashable, Sendable {
            package var download: WireDownload

            package init(download: WireDownload) {
                self.download = download
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var state: Int64

            package init(state: Int64) {
                self.state = state
            }
        }
    }

    /// Starts a download at once, or promotes the queued or running one of that unique identifier. It stays in the
    /// foreground until this connection closes.
    package enum StartForeground: WireMethod {
        package static let name = "org.backgroundassets.Manager.StartForeground"
        package struct Parameters: Codable, Hashable, Sendable {
            package var download: WireDownload

            package init(download: WireDownload) {
                self.download = download
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var state: Int64

            package init(state: Int64) {
                self.state = state
            }
        }
    }

    package enum Cancel: WireMethod {
        package static let name = "org.backgroundassets.Manager.Cancel"
        package struct Parameters: Codable, Hashable, Sendable {
            package var uniqueIdentifier: String

            package init(uniqueIdentifier: String) {
                self.uniqueIdentifier = uniqueIdentifier
            }

            private enum CodingKeys: String, CodingKey {
                case uniqueIdentifier = "unique_identifier"
            }
        }
        package typealias Reply = Nothing
    }

    /// Everything queued or running for the app. A stream of pages.
    package enum CurrentDownloads: WireMethod {
        package static let name = "org.backgroundassets.Manager.CurrentDownloads"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var downloads: [WireDownload]

            package init(downloads: [WireDownload]) {
                self.downloads = downloads
            }
        }
    }

    /// Opens a session. A stream: first the session's name, then what concerns it, until the connection closes.
    package enum Events: WireMethod {
        package static let name = "org.backgroundassets.Manager.Events"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var events: [Event]

            package init(events: [Event]) {
                self.events = events
            }
        }
    }

    /// Says whether the process has a delegate: only then its session gets began, paused, progress, challenge,
    /// failed and finished. progress false: it has no method for progress, which is then not sent; null is true.
    package enum SetDelegate: WireMethod {
        package static let name = "org.backgroundassets.Manager.SetDelegate"
        package struct Parameters: Codable, Hashable, Sendable {
            package var session: String
            package var present: Bool
            package var progress: Bool?

            package init(session: String, present: Bool, progress: Bool? = nil) {
                self.session = session
                self.present = present
                self.progress = progress
            }
        }
        package typealias Reply = Nothing
    }

    /// Answers failed or finished events, any number of them at once. not_handled: the delegate has no method for them.
    package enum Answer: WireMethod {
        package static let name = "org.backgroundassets.Manager.Answer"
        package struct Parameters: Codable, Hashable, Sendable {
            package var session: String
            package var handled: [Int64]
            package var notHandled: [Int64]

            package init(session: String, handled: [Int64], notHandled: [Int64]) {
                self.session = session
                self.handled = handled
                self.notHandled = notHandled
            }

            private enum CodingKeys: String, CodingKey {
                case session
                case handled
                case notHandled = "not_handled"
            }
        }
        package typealias Reply = Nothing
    }

    /// Answers a challenge event. disposition is "use-credential", "default", "cancel", "reject" (ask for the next protection
    /// space) or "not-implemented" (the delegate has no method for it). keep true: other downloads of the app may use the
    /// credential once the server has accepted it, as long as the service runs. It is never written.
    package enum AnswerChallenge: WireMethod {
        package static let name = "org.backgroundassets.Manager.AnswerChallenge"
        package struct Parameters: Codable, Hashable, Sendable {
            package var session: String
            package var number: Int64
            package var disposition: String
            package var user: String?
            package var password: String?
            package var keep: Bool

            package init(
                session: String, number: Int64, disposition: String, user: String? = nil, password: String? = nil,
                keep: Bool
            ) {
                self.session = session
                self.number = number
                self.disposition = disposition
                self.user = user
                self.password = password
                self.keep = keep
            }
        }
        package typealias Reply = Nothing
    }

    /// Asks for exclusive control. granted says that nobody held it: then no event follows. Else the grant or refusal
    /// comes as event with this ticket. within is in milliseconds: 0 tries once, null waits without limit.
    package enum AcquireControl: WireMethod {
        package static let name = "org.backgroundassets.Manager.AcquireControl"
        package struct Parameters: Codable, Hashable, Sendable {
            package var session: String
            package var within: Int64?

            package init(session: String, within: Int64? = nil) {
                self.session = session
                self.within = within
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var ticket: Int64
            package var granted: Bool

            package init(ticket: Int64, granted: Bool = false) {
                self.ticket = ticket
                self.granted = granted
            }
        }
    }

    /// Gives exclusive control back, or stops waiting for it.
    package enum ReleaseControl: WireMethod {
        package static let name = "org.backgroundassets.Manager.ReleaseControl"
        package struct Parameters: Codable, Hashable, Sendable {
            package var session: String
            package var ticket: Int64

            package init(session: String, ticket: Int64) {
                self.session = session
                self.ticket = ticket
            }
        }
        package typealias Reply = Nothing
    }

    /// The error `Refused`; its parameters are a `Refusal`.
    package static let refused = "org.backgroundassets.Manager.Refused"
}
