// An app that waits for one file.
internal import AssetsClient
internal import AssetsOS
internal import AssetsWire
internal import BenchmarkKit
internal import Glibc

/// Has one file downloaded at a time, in the foreground, and takes it in the callback.
final class WireReceiver {
    private let device: PrivateDevice
    private let random = SystemRandomSource()

    init(device: PrivateDevice) { self.device = device }

    /// Returns when the callback has begun; the file is then at `place`, and the message is handled.
    ///
    /// - Parameter sha256: the digest that the app declares, 64 hexadecimal digits.
    func fetch(_ url: String, bytes: Int, sha256: String?, to place: String) throws -> Duration {
        let calls = try WireControl.declared(device)
        let events = try WireControl.declared(device)
        defer {
            calls.close()
            events.close()
        }
        let download = WireDownload(
            identifier: random.uuid(), uniqueIdentifier: random.uuid(), url: url, method: "GET", headers: [], body: "",
            group: BenchBundle.group, essential: false, size: Int64(bytes), priority: 0, kind: "url", state: 0,
            sha256: sha256)
        var session = ""
        var start = Duration.zero
        var time: Duration?
        try events.stream(ManagerInterface.Events.self, Nothing()) { reply in
            for event in reply.events {
                switch event.kind {
                case "session":
                    session = event.session ?? ""
                    _ = try calls.call(ManagerInterface.SetDelegate.self, .init(session: session, present: true))
                    start = MonotonicClock.now
                    _ = try calls.call(ManagerInterface.StartForeground.self, .init(download: download))
                case "finished":
                    time = MonotonicClock.now - start
                    try check("rename") { rename(event.path ?? "", place) }
                    _ = try calls.call(
                        ManagerInterface.Answer.self, .init(session: session, handled: [event.number], notHandled: []))
                case "failed": throw BenchError("\(url): \(event.failure?.reason ?? "failed")")
                default: break
                }
            }
            return time == nil
        }
        guard let time else { throw BenchError("\(url): the service said nothing more") }
        guard try Folder.size(place) == bytes else { throw BenchError("\(url): \(place) has another size") }
        return time
    }
}
