import AssetsModel
import Testing

@Suite("Where HTTP/2 may be used") struct HTTP2RuleTests {
    @Test(
        "Only a libcurl that closes the window of a paused transfer shares connections",
        arguments: [
            ("7.88.1", 0x07_58_01, false), ("8.13.0", 0x08_0D_00, false), ("8.14.0", 0x08_0E_00, true),
            ("8.14.1", 0x08_0E_01, true), ("9.0.0", 0x09_00_00, true),
        ] as [(String, UInt32, Bool)])
    func version(_ version: String, _ number: UInt32, _ isAllowed: Bool) {
        let rule = HTTP2Rule(version: version, number: number, isBuiltIn: true)
        #expect(rule.isAllowed == isAllowed)
        #expect(rule.reason.hasPrefix(isAllowed ? "HTTP/2 for small downloads" : "HTTP/1.1 only"))
        #expect(rule.reason.contains("libcurl \(version)"))
    }

    @Test("A libcurl without HTTP/2 speaks HTTP/1.1, whatever its version")
    func notBuiltIn() {
        let rule = HTTP2Rule(version: "9.0.0", number: 0x09_00_00, isBuiltIn: false)
        #expect(!rule.isAllowed && rule.reason == "HTTP/1.1 only: libcurl 9.0.0 was built without HTTP/2")
    }
}
