// An extension that implements nothing.
import BackgroundAssets
import ExtensionFoundation

@main struct FixtureEmptyExtension: BADownloaderExtension {}
