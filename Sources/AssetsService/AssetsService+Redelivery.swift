// Messages that nobody has handled yet: deaths in the callback, and what people are told of the wait.
package import AssetsModel
internal import AssetsOS
internal import AssetsStore

extension AssetsService {
    /// The extension died in the callback of a message: that is counted across services, and so is the pause.
    func noteDeath(_ id: String, _ why: String) async {
        guard let round = rounds[id], !round.machine.isClosed else { return }
        let deaths = round.machine.deaths
        let pause = PolicyNumbers.redeliveryPause(afterDeaths: deaths)
        let times = deaths == 1 ? "once" : "\(deaths) times of \(PolicyNumbers.deliveriesMax)"
        let detail = "the extension died in the callback \(times), last: \(why)"
        journal(
            .messageWaits, .backoff, app: round.record.app, download: id, "\(detail); told again in \(pause.shown)")
        _ = try? await commit([.setMessageWait(id: id, deaths: deaths, notBefore: calendarNow + pause, detail: detail)])
    }

    /// Why nobody has handled a message yet, for people.
    package func messageWait(of record: DownloadRecord) -> (reason: Reason, detail: String) {
        guard record.request.kind == .url || record.isFailedManifest else { return (.none, "") }
        guard apps[record.app]?.gate != .shut else { return (.gate, "it is told when the app can be launched") }
        return switch rounds[record.id]?.machine.stage {
        case .withDelegates: (.none, "a process of the app has its message")
        case .inExtension: (.none, "the extension has its message")
        case .pausing: (.backoff, record.detail)
        case .waitingForExtension: (.concurrency, "its message waits for the extension, which takes one at a time")
        case .over, nil: (.concurrency, "other messages of the app are told first")
        }
    }

    /// When the extension gets the message again; nil where that is not a matter of time.
    package func nextTelling(of record: DownloadRecord) -> Duration? {
        rounds[record.id]?.machine.stage == .pausing ? record.notBefore : nil
    }
}
