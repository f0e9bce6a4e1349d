// What a log message shows, and to whom.
import Foundation
import Testing

@testable import os

@Suite struct MessageTests {
    private struct Person: CustomStringConvertible { let description = "Ann" }
    private enum Topping: String { case jam }

    private func shown(_ message: OSLogMessage) -> String { message.text(showsPrivate: false) }

    @Test("Numbers and truth are public, texts and objects private, unless it is said otherwise")
    func defaults() {
        let (count, ratio, isReady, name) = (7, 0.5, true, "secret")
        #expect(shown("\(count) \(ratio) \(isReady) \(UInt8(3))") == "7 0.500000 true 3")
        #expect(shown("[\(name)] \(Person())") == "[<private>] <private>")
        #expect(shown("[\(name, privacy: .public)] \(Person(), privacy: .public)") == "[secret] Ann")
        #expect(shown("\(count, privacy: .private) \(ratio, privacy: .sensitive)") == "<private> <private>")
        #expect(shown("\(Topping.self)").hasSuffix("Topping"))
        #expect(shown("no values") == "no values")
        #expect(shown("") == "")
    }

    @Test("An error is shown by its description, private unless it is said otherwise")
    func errors() {
        struct Failure: Error, CustomStringConvertible { let description = "no room" }
        let (error, bridged): (any Error, NSError) = (Failure(), NSError(domain: "Domain", code: 7))
        #expect(shown("\(error) \(Failure()) \(bridged)") == "<private> <private> <private>")
        #expect(shown("\(error, privacy: .public) \(Failure(), privacy: .public)") == "no room no room")
        #expect(shown("\(bridged, privacy: .public)").contains("Domain"))
    }

    @Test("A developer at a terminal sees what is private, but not what is sensitive")
    func terminal() {
        let message: OSLogMessage =
            "\("a") \("b", privacy: .private) \("c", privacy: .sensitive) \("d", privacy: .auto)"
        #expect(message.text(showsPrivate: true) == "a b <private> d")
    }

    @Test("A masked value is the same number each time, and not the value")
    func mask() {
        let first = shown("\("a", privacy: .private(mask: .hash))")
        #expect(first.hasPrefix("<mask.hash: '"))
        #expect(first == shown("\("a", privacy: .auto(mask: .hash))"))
        #expect(first != shown("\("b", privacy: .sensitive(mask: .hash))"))
        #expect(OSLogMessage("\("a", privacy: .private(mask: .none))").text(showsPrivate: false) == "<private>")
    }

    @Test("Values are formatted")
    func formats() {
        #expect(shown("\(255, format: .hex) \(255, format: .hex(includePrefix: true, uppercase: true))") == "ff 0xFF")
        #expect(shown("\(5, format: .decimal(explicitPositiveSign: true, minDigits: 3))") == "+005")
        #expect(shown("\(8, format: .octal)") == "10")
        #expect(shown("\(-5, format: .decimal(minDigits: 2)) \(Int.min)") == "-05 \(Int.min)")
        #expect(shown("\(2.0 / 3, format: .fixed(precision: 2))") == "0.67")
        #expect(shown("\(1e9, format: .exponential(precision: 1))") == "1.0e+09")
        #expect(shown("\(0.5 as Float, format: .hybrid) \(true, format: .answer)") == "0.5 yes")
        #expect(shown("[\(7, align: .right(columns: 3))]") == "[  7]")
        #expect(shown("[\("a", align: .left(columns: 3), privacy: .public)]") == "[a  ]")
        #expect(shown("\(1500, format: .byteCount) \(1536, format: .byteCountIEC)") == "1.50 kB 1.50 KiB")
        #expect(shown("\(3, format: .bitrate)") == "3 bps")
        #expect(shown("\(ENOENT, format: .darwinErrno)") == "[2: No such file or directory]")
        #expect(shown("\(Int32(bitPattern: 0x0100_007F), format: .ipv4Address)") == "127.0.0.1")
    }

    @Test("Columns and digits without an end do not eat the memory")
    func bounds() {
        #expect(shown("\(1, align: .right(columns: .max))").utf8.count <= 1024)
        #expect(shown("\(1, format: .decimal(minDigits: .max))").utf8.count <= 1024)
        #expect(shown("\(0.5, format: .fixed(precision: .max))").utf8.count <= 2048)
        #expect(shown("\(1, align: .left(columns: -5))") == "1")
    }

    private func printed(_ format: String, _ values: Any?...) -> String {
        OSLogMessage(parts: LogFormat(format).parts(values)).text(showsPrivate: false)
    }

    @Test("Formats of the older function take values of any kind")
    func olderFormats() {
        #expect(printed("%d of %ld, %.1f%%", 3, 10 as Int64, 50.25) == "3 of 10, 50.2%")
        #expect(printed("%@ %{public}@ %{private}d", "a", "b", 3) == "<private> b <private>")
        #expect(printed("%{public}s|%08x|%5d|%u", "text", 255, 7, UInt8(9)) == "text|000000ff|    7|9")
        #expect(printed("%{public}@", URL(string: "https://example.com/")) == "https://example.com/")
        #expect(printed("%{public}@", nil) == "(null)")
        #expect(printed("%{public, location:x}@", "a") == "a")
    }

    @Test(
        "A format that is none, or lacks values, is shown and harms nobody",
        arguments: [
            ("%", "%"), ("100%", "100%"), ("%d", "<missing>"), ("%{public", "%{public"), ("%y", "%y"),
            ("%99999999999999999999d", "%99999999999999999999d"), ("%n", "%n"), ("", ""),
        ])
    func brokenFormats(format: String, expected: String) { #expect(printed(format) == expected) }

    @Test("A value that does not fit its place is shown by its description; a width is bounded")
    func mismatches() {
        #expect(printed("%{public}d %{public}f", "text", "more") == "text more")
        #expect(printed("%999999d", 1).utf8.count <= 1000)
        #expect(printed("%c%d", 65, true) == "A1")
        #expect(printed("%d", UInt64.max) == "-1")
    }
}
