// A download record as a row, and back.
internal import AssetsModel
internal import FoundationEssentials

/// Columns of `downloads` in the order in which they are read and written.
enum DownloadColumn: Int32, CaseIterable {
    case sequence, id, app, identifier, url, method, headers, body, appGroup, isEssential, size, priority, kind, sha256
    case transferClass, state, target, inode, length, digest, failureDomain, failureCode, failureReason
    case attempts, failures, firstFailure, notBefore, reason, detail
    case etag, lastModified, total, syncedOffset, storageEpoch, sentDigest, isSecondTry, received, place, deaths

    /// All names, for a SELECT or INSERT.
    static let list = allCases.map { "\($0)" }.joined(separator: ", ")
    /// As many parameters.
    static let parameters = allCases.map { "?\($0.rawValue + 1)" }.joined(separator: ", ")
}

extension Statement {
    fileprivate borrowing func bind(_ value: Int64?, _ column: DownloadColumn) throws(StoreError) {
        try bind(value, at: column.rawValue + 1)
    }

    fileprivate borrowing func bind(_ value: String?, _ column: DownloadColumn) throws(StoreError) {
        try bind(value, at: column.rawValue + 1)
    }

    fileprivate borrowing func bind(_ value: [UInt8]?, _ column: DownloadColumn) throws(StoreError) {
        if let value { try bind(value, at: column.rawValue + 1) } else { try bindNull(at: column.rawValue + 1) }
    }

    fileprivate borrowing func int64(_ column: DownloadColumn) -> Int64 { int64(at: column.rawValue) }
    fileprivate borrowing func text(_ column: DownloadColumn) -> String { text(at: column.rawValue) }
    fileprivate borrowing func optionalText(_ column: DownloadColumn) -> String? { optionalText(at: column.rawValue) }
    fileprivate borrowing func duration(_ column: DownloadColumn) -> Duration? {
        optionalInt64(at: column.rawValue).map { .microseconds($0) }
    }

    // MARK: Writing

    /// Binds the parameters of `Query.insertDownload`.
    borrowing func bind(_ record: DownloadRecord, sequence: Int64) throws(StoreError) {
        let request = record.request
        try bind(sequence, .sequence)
        try bind(request.uniqueIdentifier, .id)
        try bind(record.app, .app)
        try bind(request.identifier, .identifier)
        try bind(request.url, .url)
        try bind(request.method, .method)
        try bind(request.headers.isEmpty ? nil : HeaderCoding.encode(request.headers), .headers)
        try bind(request.body.isEmpty ? nil : request.body, .body)
        try bind(request.group, .appGroup)
        try bind(request.isEssential ? 1 : 0, .isEssential)
        try bind(request.size, .size)
        try bind(Int64(request.priority), .priority)
        try bind(request.kind.rawValue, .kind)
        try bind(request.sha256, .sha256)
        try bind(Int64(record.transferClass.rawValue), .transferClass)
        try bind(record.state, first: DownloadColumn.state.rawValue + 1)
        try bind(Int64(record.attempts), .attempts)
        try bind(Int64(record.retry.failures), .failures)
        try bind(record.retry.firstFailure?.wholeMicroseconds, .firstFailure)
        try bind(record.notBefore?.wholeMicroseconds, .notBefore)
        try bind(record.reason.rawValue, .reason)
        try bind(record.detail, .detail)
        try bind(record.resume, first: DownloadColumn.etag.rawValue + 1)
        try bind(record.received, .received)
        try bind(sequence, .place)
        try bind(Int64(record.deaths), .deaths)
    }

    /// Binds the eight columns of a state, from parameter `first` on.
    borrowing func bind(_ state: DownloadRecord.State, first: Int32) throws(StoreError) {
        for offset in 1...7 { try bindNull(at: first + Int32(offset)) }
        switch state {
        case .waiting:
            try bind(0, at: first)
        case .finishing(let intent):
            try bind(1, at: first)
            try bind(intent, first: first + 1)
        case .finished(let intent):
            try bind(2, at: first)
            try bind(intent, first: first + 1)
        case .failed(let failure):
            try bind(3, at: first)
            try bind(failure.domain.rawValue, at: first + 5)
            try bind(Int64(failure.code), at: first + 6)
            try bind(failure.reason, at: first + 7)
        }
    }

    private borrowing func bind(_ intent: FinishIntent, first: Int32) throws(StoreError) {
        try bind(intent.target, at: first)
        try bind(Int64(bitPattern: intent.inode), at: first + 1)
        try bind(intent.length, at: first + 2)
        try bind(intent.digest?.text, at: first + 3)
    }

    /// Binds the seven columns of a resume point, from parameter `first` on.
    borrowing func bind(_ resume: ResumePoint?, first: Int32) throws(StoreError) {
        try bind(resume?.etag, at: first)
        try bind(resume?.lastModified, at: first + 1)
        try bind(resume?.total, at: first + 2)
        try bind(resume?.syncedOffset, at: first + 3)
        try bind(resume?.storageEpoch, at: first + 4)
        try bind(resume?.digest?.text, at: first + 5)
        try bind(resume.map { $0.isSecondTry ? 1 : 0 }, at: first + 6)
    }

    // MARK: Reading

    /// The record in the current row of a SELECT of `DownloadColumn.list`.
    borrowing func download() throws(StoreError) -> DownloadRecord {
        guard let kind = DownloadRequest.Kind(rawValue: text(.kind)),
            let transferClass = TransferClass(rawValue: Int(int64(.transferClass)))
        else { throw damaged("a kind or class is unknown") }
        let request = DownloadRequest(
            identifier: text(.identifier), uniqueIdentifier: text(.id), url: text(.url), method: text(.method),
            headers: try headers(), body: bytes(at: DownloadColumn.body.rawValue), group: text(.appGroup),
            isEssential: int64(.isEssential) != 0, size: int64(.size), priority: Int(int64(.priority)), kind: kind,
            sha256: sha256())
        return DownloadRecord(
            sequence: int64(.sequence), place: int64(.place), app: text(.app), request: request,
            transferClass: transferClass, state: try state(), attempts: Int(int64(.attempts)),
            retry: RetryHistory(failures: Int(int64(.failures)), firstFailure: duration(.firstFailure)),
            notBefore: duration(.notBefore),
            // For people only, so a word of another version is no reason to lose the download.
            reason: Reason(rawValue: text(.reason)) ?? .none, detail: text(.detail), resume: resume(),
            received: int64(.received), deaths: Int(int64(.deaths)))
    }

    private borrowing func headers() throws(StoreError) -> [HeaderField] {
        guard let json = optionalText(.headers) else { return [] }
        guard let headers = HeaderCoding.decode(json) else { throw damaged("its headers cannot be read") }
        return headers
    }

    private borrowing func state() throws(StoreError) -> DownloadRecord.State {
        switch int64(.state) {
        case 0: return .waiting
        case 1: return .finishing(intent())
        case 2: return .finished(intent())
        case 3:
            guard let domain = DownloadFailure.Domain(rawValue: text(.failureDomain)) else {
                throw damaged("its error domain is unknown")
            }
            return .failed(
                DownloadFailure(domain: domain, code: Int(int64(.failureCode)), reason: text(.failureReason)))
        default: throw damaged("its state is unknown")
        }
    }

    private borrowing func intent() -> FinishIntent {
        FinishIntent(
            target: text(.target), inode: UInt64(bitPattern: int64(.inode)), length: int64(.length),
            digest: digest(.digest))
    }

    private borrowing func resume() -> ResumePoint? {
        guard let epoch = optionalText(.storageEpoch) else { return nil }
        return ResumePoint(
            etag: optionalText(.etag), lastModified: optionalText(.lastModified), total: int64(.total),
            syncedOffset: int64(.syncedOffset), storageEpoch: epoch, digest: digest(.sentDigest),
            isSecondTry: int64(.isSecondTry) != 0)
    }

    private borrowing func sha256() -> [UInt8]? {
        let bytes = bytes(at: DownloadColumn.sha256.rawValue)
        return bytes.isEmpty ? nil : bytes
    }

    private borrowing func digest(_ column: DownloadColumn) -> ContentDigest? {
        optionalText(column).flatMap { ContentDigest($0) }
    }

    private borrowing func damaged(_ what: String) -> StoreError {
        StoreError(.corrupt, "read download \(text(.id)): \(what)")
    }
}

/// Headers as JSON text: an array of objects with `name` and `value`.
enum HeaderCoding {
    static func encode(_ headers: [HeaderField]) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings always have a JSON form.
        guard let data = try? encoder.encode(headers) else { preconditionFailure("headers without a JSON form") }
        return String(decoding: data, as: UTF8.self)
    }

    static func decode(_ json: String) -> [HeaderField]? {
        try? JSONDecoder().decode([HeaderField].self, from: Data(json.utf8))
    }
}

extension Duration {
    /// Microseconds, rounded down towards zero and kept within `Int64`: what the database holds.
    var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}
