// What this extension writes down.
import BackgroundAssets
import FixturePlan
import Foundation

func append(_ record: FixtureRecord, to container: URL) {
    guard let line = try? record.line() else { return }
    append(line: line, to: FixtureName.log, in: container)
}

extension FixturePlan.Item {
    func download(group: String) -> BAURLDownload {
        BAURLDownload(
            identifier: identifier, request: URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/")),
            essential: essential, fileSize: size, applicationGroupIdentifier: self.group ?? group,
            priority: .init(priority))
    }
}

extension BADownload {
    var listed: FixtureRecord.Listed {
        FixtureRecord.Listed(
            identifier: identifier, uniqueIdentifier: uniqueIdentifier, state: state.rawValue, essential: isEssential,
            priority: priority.rawValue, isURLDownload: self is BAURLDownload,
            isExactlyURLDownload: type(of: self) == BAURLDownload.self)
    }
}
