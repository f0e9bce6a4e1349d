// Objects that only the framework makes, values that only it changes, arguments without defaults.
import BackgroundAssets

func make(_ url: URL) {
    _ = BADownloadManager()  // expected-error {{'init()' is unavailable}}
    _ = BADownload()  // expected-error {{'init()' is unavailable}}
    _ = BAURLDownload()  // expected-error {{missing argument}}
    _ = BAAppExtensionInfo()  // expected-error {{'init()' is unavailable}}
    _ = BAURLDownload(
        identifier: "one", request: URLRequest(url: url), essential: true, fileSize: 1,
        applicationGroupIdentifier: "group")  // expected-error {{missing argument for parameter 'priority'}}
    _ = BADownload.Priority("high")  // expected-error {{cannot convert value of type 'String'}}
}

func change(_ download: BADownload, _ manager: BADownloadManager) {
    download.state = .finished  // expected-error {{'state' is a get-only property}}
    download.identifier = "other"  // expected-error {{'identifier' is a get-only property}}
    BADownloadManager.shared = manager  // expected-error {{'shared' is a get-only property}}
}

func wait(_ manager: BADownloadManager) {
    let downloads = manager.fetchCurrentDownloads()  // expected-error {{call can throw}}
    _ = downloads
}

// expected-error@+1 2 {{cannot conform to class protocol}}
struct Delegate: BADownloadManagerDelegate {}
