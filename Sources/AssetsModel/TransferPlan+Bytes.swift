// Bytes that come, their end, and what they must be then.

extension TransferPlan {
    mutating func take(_ count: Int64, _ start: Start, _ length: Int64) -> Action {
        let (sum, overflow) = length.addingReportingOverflow(count)
        guard !overflow, start.end == 0 || sum <= start.end else {
            return interrupt(
                .broken, .http, URLErrorCode.badServerResponse, "the server sent more bytes than it announced")
        }
        if let refusal = refusal(ofLength: sum) { return refusal }
        received += count
        if start.offset > 0 || sum > partial.length { hasAdvanced = true }
        state = .taking(start, length: sum)
        return .append
    }

    mutating func finish(_ start: Start, _ length: Int64) -> Action {
        guard start.total == 0 || length == start.total else {
            return interrupt(
                .broken, .network, URLErrorCode.networkConnectionLost,
                "the response ended after \(length) of \(start.total) bytes")
        }
        if isPage, order.expectedSize > 0, length != order.expectedSize { return portal() }
        if let refusal = refusal(ofTotal: length) { return refusal }
        self.start = start
        guard let check = start.check else {
            state = .done
            return .complete(length: length)
        }
        state = .checking(start, length: length)
        return .check(check, length: length)
    }

    /// The bytes come to this.
    package mutating func checked(_ digest: ContentDigest) -> Action {
        guard case .checking(let start, let length) = state, let check = start.check else {
            preconditionFailure("a digest in \(state)")
        }
        if digest == check.expected {
            state = .done
            return .complete(length: length)
        }
        // Nobody declared a length or a version that a sign-in page could have broken before.
        if isPage { return portal() }
        let what = check.from == 0 ? "the file" : "the part from byte \(check.from) on"
        let why =
            "\(what) has the \(digest.shown), "
            + "\(check.isDeclared ? "the app declared" : "the server announced") \(check.expected.hexadecimal)"
        // Which of several answers was wrong cannot be told, so all is fetched once more, in one piece if it can be. What
        // came in one piece is what the server has.
        guard start.offset > 0, !isSecondTry else {
            state = .done
            return .refuse(Self.failure(why), .digest)
        }
        isSecondTry = true
        return startOver("put together from several answers, \(why)")
    }

    // MARK: Sizes

    /// A file of this size is not wanted.
    mutating func refusal(ofTotal total: Int64) -> Action? {
        if let limit = order.sizeLimit, total > limit {
            return refuseLength(.disallowedByAllowance, "the file has \(total) bytes, \(limit) are allowed")
        }
        guard order.sizeMustMatch, order.expectedSize > 0, total != order.expectedSize else { return nil }
        return refuseSize("the server's file has \(total) bytes, \(order.expectedSize) were announced")
    }

    /// So many bytes are already too many.
    private mutating func refusal(ofLength length: Int64) -> Action? {
        if let limit = order.sizeLimit, length > limit {
            return refuseLength(.allowanceExceeded, "the file is larger than the \(limit) bytes that are allowed")
        }
        guard order.sizeMustMatch, order.expectedSize > 0, length > order.expectedSize else { return nil }
        if isPage { return portal() }
        return refuseSize("the server's file is larger than the \(order.expectedSize) bytes announced")
    }

    private mutating func refuseLength(_ code: AssetsError.Code, _ why: String) -> Action {
        state = .done
        return .refuse(DownloadFailure(AssetsError(code, why)), .allowance)
    }

    private mutating func refuseSize(_ why: String) -> Action {
        state = .done
        return .refuse(Self.failure(why), .size)
    }
}
