// Downloads as values: in sets and dictionaries, across tasks, by class, by priority.
import BackgroundAssets

extension BADownload.Priority {
    static let tutorial = BADownload.Priority(rawValue: BADownload.Priority.default.rawValue + 1)
    static let extras = BADownload.Priority.min
}

extension BAURLDownload {
    /// What apps add so that they need not repeat themselves.
    convenience init(_ name: String, at base: URL, size: Int, group: String, essential: Bool = false) {
        var request = URLRequest(url: base.appendingPathComponent(name))
        request.setValue("corpus", forHTTPHeaderField: "X-App")
        request.timeoutInterval = 30
        self.init(
            identifier: name, request: request, essential: essential, fileSize: size,
            applicationGroupIdentifier: group, priority: essential ? .max : .tutorial)
    }
}

struct Queue: Sendable {
    private var order: [BADownload] = []
    private var attempts: [BADownload: Int] = [:]

    mutating func add(_ download: BADownload) {
        guard attempts[download] == nil else { return }
        order.append(download)
        attempts[download] = 1
    }

    var names: [String] { order.map(\.identifier) }
}

func split(_ downloads: Set<BADownload>) -> (essential: [BAURLDownload], other: [BADownload]) {
    (
        downloads.compactMap { $0 as? BAURLDownload }.filter(\.isEssential),
        downloads.filter { !$0.isEssential }.map { $0.removingEssential() }
    )
}

func describe(_ download: BADownload) async -> String {
    await Task.detached {
        type(of: download) == BAURLDownload.self ? "\(download.identifier) \(download.state.rawValue)" : "\(download)"
    }.value
}

func copies(of download: BAURLDownload) -> Bool {
    let copy = download.copy() as? BAURLDownload
    let plain: BAURLDownload = download.removingEssential()
    return copy?.identifier == plain.identifier && UUID(uuidString: download.uniqueIdentifier) != nil
}
