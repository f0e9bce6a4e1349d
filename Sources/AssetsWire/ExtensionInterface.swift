// Messages of org.backgroundassets.Extension; the interface file explains them.

/// `org.backgroundassets.Extension`.
package enum ExtensionInterface {
    package static let interface = "org.backgroundassets.Extension"

    /// downloads(for:manifestURL:extensionInfo:). request is the value of BAContentRequest; the remaining sizes are null
    /// when no restriction holds. A stream of pages; implemented false: the extension has no such method.
    package enum ContentRequest: WireMethod {
        package static let name = "org.backgroundassets.Extension.ContentRequest"
        package struct Parameters: Codable, Hashable, Sendable {
            package var request: Int64
            package var manifest: String
            package var remaining: Int64?
            package var essentialRemaining: Int64?

            package init(
                request: Int64, manifest: String, remaining: Int64? = nil, essentialRemaining: Int64? = nil
            ) {
                self.request = request
                self.manifest = manifest
                self.remaining = remaining
                self.essentialRemaining = essentialRemaining
            }

            private enum CodingKeys: String, CodingKey {
                case request
                case manifest
                case remaining
                case essentialRemaining = "essential_remaining"
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var implemented: Bool
            package var downloads: [WireDownload]

            package init(implemented: Bool, downloads: [WireDownload]) {
                self.implemented = implemented
                self.downloads = downloads
            }
        }
    }

    /// The entry point of 2022 for that occasion: applicationDidInstall(metadata:), applicationDidUpdate(metadata:) or
    /// checkForUpdates(metadata:). Called when ContentRequest was not implemented. While it runs the extension may
    /// schedule.
    package enum ApplicationEvent: WireMethod {
        package static let name = "org.backgroundassets.Extension.ApplicationEvent"
        package struct Parameters: Codable, Hashable, Sendable {
            package var request: Int64
            package var remaining: Int64?
            package var essentialRemaining: Int64?

            package init(request: Int64, remaining: Int64? = nil, essentialRemaining: Int64? = nil) {
                self.request = request
                self.remaining = remaining
                self.essentialRemaining = essentialRemaining
            }

            private enum CodingKeys: String, CodingKey {
                case request
                case remaining
                case essentialRemaining = "essential_remaining"
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var implemented: Bool

            package init(implemented: Bool) {
                self.implemented = implemented
            }
        }
    }

    /// The reply comes when the callback has returned and everything it started for the file has ended.
    package enum DownloadFailed: WireMethod {
        package static let name = "org.backgroundassets.Extension.DownloadFailed"
        package struct Parameters: Codable, Hashable, Sendable {
            package var download: WireDownload
            package var failure: WireFailure

            package init(download: WireDownload, failure: WireFailure) {
                self.download = download
                self.failure = failure
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var implemented: Bool

            package init(implemented: Bool) {
                self.implemented = implemented
            }
        }
    }

    package enum DownloadFinished: WireMethod {
        package static let name = "org.backgroundassets.Extension.DownloadFinished"
        package struct Parameters: Codable, Hashable, Sendable {
            package var download: WireDownload
            package var path: String

            package init(download: WireDownload, path: String) {
                self.download = download
                self.path = path
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var implemented: Bool

            package init(implemented: Bool) {
                self.implemented = implemented
            }
        }
    }

    /// disposition, user, password and keep as in AnswerChallenge of org.backgroundassets.Manager.
    package enum Challenged: WireMethod {
        package static let name = "org.backgroundassets.Extension.Challenged"
        package struct Parameters: Codable, Hashable, Sendable {
            package var download: WireDownload
            package var challenge: WireChallenge

            package init(download: WireDownload, challenge: WireChallenge) {
                self.download = download
                self.challenge = challenge
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var disposition: String
            package var user: String?
            package var password: String?
            package var keep: Bool

            package init(disposition: String, user: String? = nil, password: String? = nil, keep: Bool) {
                self.disposition = disposition
                self.user = user
                self.password = password
                self.keep = keep
            }
        }
    }

    /// extensionWillTerminate().
    package enum WillTerminate: WireMethod {
        package static let name = "org.backgroundassets.Extension.WillTerminate"
        package typealias Parameters = Nothing
        package typealias Reply = Nothing
    }
}
