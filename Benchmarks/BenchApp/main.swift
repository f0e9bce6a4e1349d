// The app that the benches install. Nothing of it is measured; launched by hand it lists what it downloads.
import BackgroundAssets

for download in try BADownloadManager.shared.fetchCurrentDownloads() { print(download.identifier) }
