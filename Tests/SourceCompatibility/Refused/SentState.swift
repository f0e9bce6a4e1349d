// What is not Sendable cannot leave an actor by way of exclusive control, nor be used there while another task uses it.
import BackgroundAssets

class Ledger {
    var lines: [String] = []
}

actor Bookkeeper {
    private let ledger = Ledger()

    func handOut() async throws -> sending Ledger {
        // expected-five-warning@+3 {{returning 'self'-isolated 'self.ledger' as a 'sending' result}}
        // expected-six-error@+2 {{returning 'self'-isolated 'self.ledger' as a 'sending' result}}
        // expected-note@+1 {{the caller assumes that 'self.ledger' can be safely sent}}
        try await BADownloadManager.shared.withExclusiveControl { self.ledger }
    }
}

func keepAndSend(_ download: BADownload) async throws {
    let ledger = Ledger()
    // expected-five-warning@+3 {{sending value of non-Sendable type '() async -> ()'}}
    // expected-six-error@+2 {{sending value of non-Sendable type '() async -> ()'}}
    // expected-note@+1 {{risks causing races in between local and caller code}}
    Task.detached { ledger.lines.append(download.identifier) }
    // expected-note@+1 {{access can happen concurrently}}
    try await BADownloadManager.shared.withExclusiveControl { ledger.lines.append("here") }
}
