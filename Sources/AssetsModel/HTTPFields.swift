// The few header fields that decide how a transfer goes on, read strictly: what is not exactly right is not there.

/// Text of protocols, compared as bytes.
package enum ASCIIText {
    /// Equal but for the case of ASCII letters.
    package static func isEqual(_ left: String, _ right: String) -> Bool {
        left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { lower($0) == lower($1) }
    }

    package static func lower(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    package static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    package static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower(byte))
    }

    /// A name of a header field or a method: section 5.6.2 of RFC 9110.
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
    }

    package static func isTokenByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || isDigit(byte) || tokenSigns.contains(byte)
    }

    private static let tokenSigns = [UInt8]("!#$%&'*+-.^_`|~".utf8)

    /// Digits and nothing else, without overflow.
    package static func number(_ digits: some StringProtocol) -> Int64? {
        guard !digits.isEmpty, digits.utf8.allSatisfy(isDigit) else { return nil }
        return Int64(digits)
    }
}

/// What an app may put into a request.
package enum RequestFields {
    /// Methods whose answer has no body, or none that is a file.
    private static let refusedMethods = ["HEAD", "CONNECT", "TRACE", "OPTIONS"]

    /// Why a request cannot be sent; nil when it can.
    package static func problem(method: String, headers: [HeaderField]) -> String? {
        guard ASCIIText.isToken(method), !refusedMethods.contains(method) else {
            return "the method \(method.prefix(20)) brings no file"
        }
        let bad = headers.first { field in
            !ASCIIText.isToken(field.name) || !field.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 }
        }
        return bad.map { "the header field \($0.name.prefix(40)) holds characters that no header field may hold" }
    }
}

/// Names of one version of a resource that another request can be tied to.
package enum Validator {
    /// Bytes of a tag or date that is kept; a longer one is as good as none.
    package static let lengthMax = 512

    /// The entity tag when it is strong, with its quotes.
    ///
    /// nginx makes its tags of the time in seconds and the size, and of nothing else: such a one names a version as well as
    /// the date does, and a file that was replaced twice in a second has the same tag before and after.
    package static func strongTag(in head: TransportHead) -> String? {
        guard let tag = quotedTag(in: head) else { return nil }
        if strongDate(in: head) != nil { return tag }
        guard let changed = head.value(of: "Last-Modified").flatMap(HTTPDate.seconds) else { return tag }
        let parts = tag.dropFirst().dropLast().split(separator: "-")
        let isMadeOfDate = parts.count == 2 && parts.contains { $0 == String(changed, radix: 16) }
        return isMadeOfDate ? nil : tag
    }

    /// Whether the response names its version at all, strongly or weakly.
    package static func isNamed(_ head: TransportHead) -> Bool {
        head.headers.contains { ASCIIText.isEqual($0.name, "ETag") || ASCIIText.isEqual($0.name, "Last-Modified") }
    }

    private static func quotedTag(in head: TransportHead) -> String? {
        guard let tag = head.value(of: "ETag"), tag.utf8.count <= lengthMax, tag.utf8.count >= 2 else { return nil }
        let inner = tag.utf8.dropFirst().dropLast()
        guard tag.utf8.first == UInt8(ascii: "\""), tag.utf8.last == UInt8(ascii: "\"") else { return nil }
        return inner.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") } ? tag : nil
    }

    /// Last-Modified when it names one version: the response was made at least a second after the date, so no second
    /// change can hide behind it.
    package static func strongDate(in head: TransportHead) -> String? {
        guard let text = head.value(of: "Last-Modified"), let changed = HTTPDate.seconds(text),
            let sent = head.value(of: "Date").flatMap(HTTPDate.seconds), sent > changed
        else { return nil }
        return text
    }
}

/// Content-Range of a 206 or 416.
package struct ContentRange: Hashable, Sendable {
    /// First and last byte; nil in a 416.
    package var bytes: ClosedRange<Int64>?
    /// Bytes of the whole; nil where the server does not say.
    package var total: Int64?

    /// Reads `bytes 10-19/20`, `bytes 10-19/*` and `bytes */20`.
    package init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, ASCIIText.isEqual(String(words[0]), "bytes") else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        if halves[1] != "*" {
            guard let total = ASCIIText.number(halves[1]) else { return nil }
            self.total = total
        }
        if halves[0] == "*" { return }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = ASCIIText.number(ends[0]), let last = ASCIIText.number(ends[1]),
            first <= last, last < total ?? .max
        else { return nil }
        bytes = first...last
    }
}

/// Dates in the one form that servers may send: `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Seconds since 1970; nil for anything else.
    package static func seconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count == 29, text.hasSuffix(" GMT"), bytes[3] == UInt8(ascii: ","), bytes[4] == UInt8(ascii: " "),
            bytes[7] == UInt8(ascii: " "), bytes[11] == UInt8(ascii: " "), bytes[16] == UInt8(ascii: " "),
            bytes[19] == UInt8(ascii: ":"), bytes[22] == UInt8(ascii: ":")
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            ASCIIText.number(String(decoding: bytes[range], as: UTF8.self))
        }
        let name = String(decoding: bytes[8..<11], as: UTF8.self)
        guard let day = number(5..<7), let month = months.firstIndex(of: name), let year = number(12..<16),
            let hour = number(17..<19), let minute = number(20..<22),
            let second = number(23..<25), (1...31).contains(day), year >= 1970, hour < 24, minute < 60, second <= 60
        else { return nil }
        return daysSince1970(year: year, month: Int64(month) + 1, day: day) * 86400 + hour * 3600 + minute * 60 + second
    }

    /// Counts from 1 March, so that the leap day is a year's last.
    private static func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
        let marchYear = month > 2 ? year : year - 1
        let era = marchYear / 400
        let yearOfEra = marchYear % 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}

/// Retry-After: seconds, or a date that is compared with the response's own.
package enum RetryAfter {
    package static func delay(in head: TransportHead) -> Duration? {
        guard let text = head.value(of: "Retry-After") else { return nil }
        if let seconds = ASCIIText.number(text) {
            return .seconds(min(seconds, PolicyNumbers.retryAfterMax.components.seconds))
        }
        guard let date = HTTPDate.seconds(text), let now = head.value(of: "Date").flatMap(HTTPDate.seconds) else {
            return nil
        }
        return .seconds(min(max(0, date - now), PolicyNumbers.retryAfterMax.components.seconds))
    }
}
