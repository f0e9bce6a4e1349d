// One session as it is shown: the same value as text and as JSON.
import BackgroundAssets
import SessionsCore

/// A row of the list.
struct SessionRow: Encodable {
    enum State: String, Encodable { case local, downloading, waiting, failed }

    let id: String
    let title: String
    let essential: Bool
    let size: Int64
    let received: Int64
    let state: State
    /// Where the file is; nil when it is not here.
    let path: String?
    /// Why it failed.
    let reason: String?

    init(_ session: Session, _ state: SessionManager.State, _ path: String?) {
        id = session.id
        title = session.title
        essential = session.essential
        size = session.size
        switch state {
        case .local: (self.state, received, reason) = (.local, session.size, nil)
        case .downloading(let bytes): (self.state, received, reason) = (.downloading, bytes, nil)
        case .waiting(let bytes): (self.state, received, reason) = (.waiting, bytes, nil)
        case .failed(let why): (self.state, received, reason) = (.failed, 0, why)
        }
        self.path = path
    }

    /// One line: a green dot for essential sessions, the title, the size and how far it has come.
    ///
    /// - Parameter width: Columns that it must not exceed; nil without a limit.
    func line(width: Int?, isColored: Bool) -> String {
        let note =
            switch state {
            case .local: "on this machine"
            case .downloading: "\(Self.bar(Double(received) / Double(size)))"
            case .waiting: received > 0 ? "paused at \(percent)" : "waiting"
            case .failed: "failed: \(reason ?? "")"
            }
        let bytes = Self.formatted(size)
        // Dot, spaces and the places of size and state; the title gets the rest of a wide terminal.
        let titleWidth = min(40, max(8, (width ?? 100) - 40))
        let plain =
            Self.fitted(title, titleWidth) + "  " + String(repeating: " ", count: max(0, 9 - bytes.count)) + bytes
            + "  " + note
        let text = width.map { String(plain.prefix(max(0, $0 - 3))) } ?? plain
        let dot = essential ? (isColored ? "\u{1B}[32m●\u{1B}[0m" : "●") : " "
        return "\(dot) \(text)"
    }

    private var percent: String { "\(received * 100 / size) %" }

    private static func fitted(_ text: String, _ width: Int) -> String {
        text.count > width
            ? text.prefix(width - 1) + "…" : text + String(repeating: " ", count: width - text.count)
    }

    private static func bar(_ fraction: Double) -> String {
        let width = 16
        let full = Int((min(1, max(0, fraction)) * Double(width)).rounded(.down))
        return String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
            + " \(Int(min(1, fraction) * 100)) %"
    }

    private static func formatted(_ bytes: Int64) -> String {
        let tenths = (Double(bytes) / 1e5).rounded()
        return tenths >= 1 ? "\(tenths / 10) MB" : "\(bytes) B"
    }
}
