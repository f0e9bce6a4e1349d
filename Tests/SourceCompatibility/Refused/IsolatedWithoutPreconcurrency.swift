// The framework calls delegates on a queue of its own, which a class of the main actor has to take into account.
import BackgroundAssets

// expected-five-warning@+6 {{crosses into main actor-isolated code}}
// expected-six-error@+5 {{crosses into main actor-isolated code}}
// expected-note@+4 {{isolate this conformance to the main actor}}
// expected-note@+3 {{turn data races into runtime errors with '@preconcurrency'}}
// expected-note@+2 {{mark all declarations used in the conformance 'nonisolated'}}
@MainActor
final class ScreenDelegate: NSObject, BADownloadManagerDelegate {
    var count = 0

    // expected-note@+1 {{cannot satisfy nonisolated requirement}}
    func downloadDidBegin(_ download: BADownload) { count += 1 }
}
