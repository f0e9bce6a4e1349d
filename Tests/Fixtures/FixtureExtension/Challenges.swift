// What the extension says to servers that ask who asks.
import BackgroundAssets
import FixturePlan
import Foundation
import FoundationNetworking

extension FixtureExtension {
    /// Answers as the plan says, in turn over the lives of its processes. Before there is a plan a server that asks is
    /// that of the manifest.
    func backgroundDownload(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        var record = FixtureRecord(challenge)
        record.download = download.listed
        record.onMainThread = isOnMainThread()
        append(record, to: container)
        storedPlan(in: container)?.die(at: .challengeBegins, in: container)
        let answers = storedPlan(in: container)?.challenges ?? [FixtureAnswer(.right)]
        let mark = container.appendingPathComponent(FixtureName.challenges)
        let count = storedPlan(in: container) == nil ? 0 : FileManager.default.contents(atPath: mark.path)?.count ?? 0
        if storedPlan(in: container) != nil { try? Data(repeating: 0x78, count: count + 1).write(to: mark) }
        guard !answers.isEmpty else { return (.performDefaultHandling, nil) }
        let answer = answers[min(count, answers.count - 1)]
        storedPlan(in: container)?.die(at: .challengeIsDone, in: container)
        storedPlan(in: container)?.dieSoon(at: .challengeReturns, in: container)
        if let reply = answer.reply { return reply }
        // Nobody ever says anything.
        let (never, end) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        end.finish()
        return (.performDefaultHandling, nil)
    }
}

/// Asked in a function of its own: asynchronous ones must not ask.
private func isOnMainThread() -> Bool { Thread.isMainThread }
