// Messages about what holds an app and its downloads; the interface file explains them.

extension DeviceInterface {
    /// How something of an app stands.
    package struct Standing: Codable, Hashable, Sendable {
        package var subject: String
        /// Of a download; empty where it is about none.
        package var identifier: String
        package var uniqueIdentifier: String
        /// Whether something holds it.
        package var held: Bool
        /// The one rule that holds it now; empty where nothing does.
        package var reason: String
        package var detail: String
        /// What releases it, to be read after "released when"; empty where nothing holds it.
        package var release: String
        /// When it goes on at the latest, in calendar seconds since 1970; 0 when that is not a matter of time.
        package var latest: Double

        package init(
            subject: String, identifier: String, uniqueIdentifier: String, held: Bool, reason: String, detail: String,
            release: String, latest: Double
        ) {
            self.subject = subject
            self.identifier = identifier
            self.uniqueIdentifier = uniqueIdentifier
            self.held = held
            self.reason = reason
            self.detail = detail
            self.release = release
            self.latest = latest
        }

        private enum CodingKeys: String, CodingKey {
            case subject
            case identifier
            case uniqueIdentifier = "unique_identifier"
            case held
            case reason
            case detail
            case release
            case latest
        }
    }

    /// How an app stands: its gate, extension, exclusive control and periodic checks, and each download that something
    /// holds. With a download, its identifier or unique identifier, only that. A stream of pages.
    package enum Why: WireMethod {
        package static let name = "org.backgroundassets.Device.Why"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String
            package var download: String

            package init(app: String, download: String) {
                self.app = app
                self.download = download
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var standings: [Standing]

            package init(standings: [Standing]) {
                self.standings = standings
            }
        }
    }
}
