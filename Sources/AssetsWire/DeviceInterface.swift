// Messages of org.backgroundassets.Device; the interface file explains them.

/// `org.backgroundassets.Device`.
package enum DeviceInterface {
    package static let interface = "org.backgroundassets.Device"

    /// An app on this device. state is "installing" or "ready".
    package struct App: Codable, Hashable, Sendable {
        package var bundleIdentifier: String
        package var name: String
        package var version: String
        package var build: String
        package var state: String
        package var launchable: Bool
        /// Why it cannot be launched; empty when it can.
        package var reason: String
        /// Path of the installed bundle; empty until it is unpacked.
        package var path: String
        /// Calendar seconds since 1970; 0 where it has not happened.
        package var installedAt: Double
        package var launchedAt: Double

        package init(
            bundleIdentifier: String, name: String, version: String, build: String, state: String, launchable: Bool,
            reason: String, path: String, installedAt: Double, launchedAt: Double
        ) {
            self.bundleIdentifier = bundleIdentifier
            self.name = name
            self.version = version
            self.build = build
            self.state = state
            self.launchable = launchable
            self.reason = reason
            self.path = path
            self.installedAt = installedAt
            self.launchedAt = launchedAt
        }

        private enum CodingKeys: String, CodingKey {
            case bundleIdentifier = "bundle_id"
            case name
            case version
            case build
            case state
            case launchable
            case reason
            case path
            case installedAt = "installed_at"
            case launchedAt = "launched_at"
        }
    }

    /// One step of an installation. phase is "archive", "unpacking", "manifest", "asking", "essential", "launchable",
    /// "failed" or "cancelled"; the last three end the stream.
    package struct InstallUpdate: Codable, Hashable, Sendable {
        /// Names the installation; FollowInstall takes it after a lost connection.
        package var install: String
        package var app: String
        package var phase: String
        /// 0 to 1, never going back.
        package var fraction: Double
        /// Bytes of essential assets (and archive and manifest): received and expected.
        package var received: Int64
        package var expected: Int64
        /// A sentence for people: what happens, what is waited for, or why it failed.
        package var detail: String
        /// Error code of a failed installation, 0 otherwise.
        package var code: Int64
        package var remedy: String

        package init(
            install: String, app: String, phase: String, fraction: Double, received: Int64, expected: Int64,
            detail: String, code: Int64, remedy: String
        ) {
            self.install = install
            self.app = app
            self.phase = phase
            self.fraction = fraction
            self.received = received
            self.expected = expected
            self.detail = detail
            self.code = code
            self.remedy = remedy
        }
    }

    /// A download as the device sees it. state is "waiting", "downloading", "finishing", "finished" or "failed";
    /// class is "background", "foreground" or "essential".
    package struct Download: Codable, Hashable, Sendable {
        package var app: String
        package var identifier: String
        package var uniqueIdentifier: String
        package var kind: String
        package var url: String
        package var group: String
        package var essential: Bool
        package var priority: Int64
        package var transferClass: String
        package var state: String
        package var received: Int64
        package var expected: Int64
        package var attempts: Int64
        /// Why it waits or failed; empty otherwise.
        package var reason: String
        package var detail: String
        /// When it is tried next, in calendar seconds since 1970; 0 when that is not a matter of time.
        package var nextTry: Double

        package init(
            app: String, identifier: String, uniqueIdentifier: String, kind: String, url: String, group: String,
            essential: Bool, priority: Int64, transferClass: String, state: String, received: Int64, expected: Int64,
            attempts: Int64, reason: String, detail: String, nextTry: Double
        ) {
            self.app = app
            self.identifier = identifier
            self.uniqueIdentifier = uniqueIdentifier
            self.kind = kind
            self.url = url
            self.group = group
            self.essential = essential
            self.priority = priority
            self.transferClass = transferClass
            self.state = state
            self.received = received
            self.expected = expected
            self.attempts = attempts
            self.reason = reason
            self.detail = detail
            self.nextTry = nextTry
        }

        private enum CodingKeys: String, CodingKey {
            case app
            case identifier
            case uniqueIdentifier = "unique_identifier"
            case kind
            case url
            case group
            case essential
            case priority
            case transferClass = "class"
            case state
            case received
            case expected
            case attempts
            case reason
            case detail
            case nextTry = "next_try"
        }
    }

    /// A setting: its value as people may see it.
    package struct Setting: Codable, Hashable, Sendable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// One layer of the sandbox of extensions.
    package struct SandboxLayer: Codable, Hashable, Sendable {
        package var name: String
        package var active: Bool
        /// What it is made of; why it is missing.
        package var detail: String
        /// What an extension can do because of what is missing, a sentence each.
        package var weaker: [String]

        package init(name: String, active: Bool, detail: String, weaker: [String]) {
            self.name = name
            self.active = active
            self.detail = detail
            self.weaker = weaker
        }
    }

    package struct JournalEntry: Codable, Hashable, Sendable {
        package var number: Int64
        /// Calendar seconds since 1970.
        package var time: Double
        package var event: String
        package var reason: String
        package var app: String
        package var download: String
        package var detail: String

        package init(
            number: Int64, time: Double, event: String, reason: String, app: String, download: String, detail: String
        ) {
            self.number = number
            self.time = time
            self.event = event
            self.reason = reason
            self.app = app
            self.download = download
            self.detail = detail
        }
    }

    /// What this service is.
    package enum Describe: WireMethod {
        package static let name = "org.backgroundassets.Device.Describe"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var device: String
            package var root: String
            package var version: String
            package var process: Int64
            package var developerMode: Bool
            package var settings: [Setting]

            package init(
                device: String, root: String, version: String, process: Int64, developerMode: Bool,
                settings: [Setting] = []
            ) {
                self.device = device
                self.root = root
                self.version = version
                self.process = process
                self.developerMode = developerMode
                self.settings = settings
            }

            private enum CodingKeys: String, CodingKey {
                case device
                case root
                case version
                case process
                case developerMode = "developer_mode"
                case settings
            }
        }
    }

    /// What extensions are closed off with on this machine, found out by trying when the service started.
    package enum Sandbox: WireMethod {
        package static let name = "org.backgroundassets.Device.Sandbox"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var layers: [SandboxLayer]

            package init(layers: [SandboxLayer]) {
                self.layers = layers
            }
        }
    }

    /// Installs an app from a bundle folder or archive, given as absolute path or https URL. source_kind is "store" or
    /// "sideload"; with "sideload" the app is launchable at once. A stream: one update for each step or 1/10 s.
    package enum Install: WireMethod {
        package static let name = "org.backgroundassets.Device.Install"
        package struct Parameters: Codable, Hashable, Sendable {
            package var source: String
            package var sourceKind: String

            package init(source: String, sourceKind: String) {
                self.source = source
                self.sourceKind = sourceKind
            }

            private enum CodingKeys: String, CodingKey {
                case source
                case sourceKind = "source_kind"
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var update: InstallUpdate

            package init(update: InstallUpdate) {
                self.update = update
            }
        }
    }

    /// Goes on telling of an installation. A stream.
    package enum FollowInstall: WireMethod {
        package static let name = "org.backgroundassets.Device.FollowInstall"
        package struct Parameters: Codable, Hashable, Sendable {
            package var install: String

            package init(install: String) {
                self.install = install
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var update: InstallUpdate

            package init(update: InstallUpdate) {
                self.update = update
            }
        }
    }

    /// Ends an installation and removes what it left.
    package enum CancelInstall: WireMethod {
        package static let name = "org.backgroundassets.Device.CancelInstall"
        package struct Parameters: Codable, Hashable, Sendable {
            package var install: String

            package init(install: String) {
                self.install = install
            }
        }
        package typealias Reply = Nothing
    }

    package enum Uninstall: WireMethod {
        package static let name = "org.backgroundassets.Device.Uninstall"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String

            package init(app: String) {
                self.app = app
            }
        }
        package typealias Reply = Nothing
    }

    /// Asks the launch gate. Answers the executable to start and the environment it needs, and counts as a launch.
    package enum Launch: WireMethod {
        package static let name = "org.backgroundassets.Device.Launch"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String

            package init(app: String) {
                self.app = app
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var executable: String
            package var environment: [String: String]

            package init(executable: String, environment: [String: String]) {
                self.executable = executable
                self.environment = environment
            }
        }
    }

    /// A stream of pages.
    package enum Apps: WireMethod {
        package static let name = "org.backgroundassets.Device.Apps"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var apps: [App]

            package init(apps: [App]) {
                self.apps = apps
            }
        }
    }

    /// Downloads of one app, or of all with an empty name. A stream of pages.
    package enum Downloads: WireMethod {
        package static let name = "org.backgroundassets.Device.Downloads"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String

            package init(app: String) {
                self.app = app
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var downloads: [Download]

            package init(downloads: [Download]) {
                self.downloads = downloads
            }
        }
    }

    /// Journal rows after a number, of one app or of all with an empty name. A stream of pages; with follow it goes on.
    package enum Journal: WireMethod {
        package static let name = "org.backgroundassets.Device.Journal"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String
            package var after: Int64
            package var follow: Bool

            package init(app: String, after: Int64, follow: Bool) {
                self.app = app
                self.after = after
                self.follow = follow
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var entries: [JournalEntry]

            package init(entries: [JournalEntry]) {
                self.entries = entries
            }
        }
    }

    /// Developer Mode only: has the app's extension asked at once as on an occasion: "install", "update" or "periodic".
    /// First its manifest is fetched. The answer says that the event was taken; the journal tells what came of it.
    package enum Simulate: WireMethod {
        package static let name = "org.backgroundassets.Device.Simulate"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String
            package var event: String

            package init(app: String, event: String) {
                self.app = app
                self.event = event
            }
        }
        package typealias Reply = Nothing
    }

    /// Developer Mode admits unsigned bundles, declared callers and the development certificate authority.
    package enum SetDeveloperMode: WireMethod {
        package static let name = "org.backgroundassets.Device.SetDeveloperMode"
        package struct Parameters: Codable, Hashable, Sendable {
            package var on: Bool

            package init(on: Bool) {
                self.on = on
            }
        }
        package typealias Reply = Nothing
    }

    /// Changes a setting. What its values are is said in the refusal of another one.
    package enum SetSetting: WireMethod {
        package static let name = "org.backgroundassets.Device.SetSetting"
        package typealias Parameters = Setting
        package typealias Reply = Nothing
    }

    /// The error `Refused`; its parameters are a `Refusal`.
    package static let refused = "org.backgroundassets.Device.Refused"
}
