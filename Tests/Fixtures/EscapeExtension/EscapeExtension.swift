// An extension that tries to get out of its sandbox: one probe of EscapeProbes, or of a library beside it, in each process.
import BackgroundAssets
import EscapeProbes
import ExtensionFoundation

@main struct EscapeExtension: BADownloaderExtension {
    init() { escape_run_inside() }
}
