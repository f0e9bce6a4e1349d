// NSPinnedDomains in an app's property list.
import AssetsModel
import Testing

@testable import AssetsInstaller

@Suite("Pinned keys in a bundle")
struct PinningTests {
    private static let key = String(repeating: "A", count: 43) + "="

    private func domains(_ xml: String) throws(AssetsError) -> [PinnedDomain]? {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <plist version="1.0"><dict><key>NSAppTransportSecurity</key>\(xml)</dict></plist>
            """
        return try PinningKeys.domains(of: PropertyList(bytes: Array(text.utf8), shown: "Info.plist"))
    }

    private func pinned(_ host: String, _ inner: String) -> String {
        "<dict><key>NSPinnedDomains</key><dict><key>\(host)</key><dict>\(inner)</dict></dict></dict>"
    }

    private func leaf(_ key: String) -> String {
        "<key>NSPinnedLeafIdentities</key><array><dict><key>SPKI-SHA256-BASE64</key><string>\(key)</string></dict></array>"
    }

    @Test("Apple's keys are read as they are")
    func reads() throws {
        let inner = "<key>NSIncludesSubdomains</key><true/>" + leaf(Self.key)
        #expect(
            try domains(pinned("CDN.example.com", inner))
                == [PinnedDomain(host: "cdn.example.com", includesSubdomains: true, keys: [Self.key])])
        #expect(try domains("<dict><key>NSAllowsArbitraryLoads</key><true/></dict>") == nil)
    }

    @Test(
        "What would pin nothing, or not what the app means, is refused with the key",
        arguments: [
            ("cdn.example.com", "", "NSPinnedLeafIdentities"),
            ("cdn.example.com", "<key>NSPinnedLeafIdentities</key><array/>", "NSPinnedLeafIdentities"),
            ("cdn.example.com", "<key>NSPinnedCAIdentities</key><array/>", "NSPinnedCAIdentities"),
            ("https://cdn.example.com", "", "host name"), ("*.example.com", "", "host name"),
            ("cdn.example.com", "short", "SPKI-SHA256-BASE64"),
        ])
    func refuses(host: String, inner: String, word: String) {
        let inner = inner == "short" ? leaf("c2hvcnQ=") : inner
        let error = #expect(throws: AssetsError.self) { try domains(pinned(host, inner)) }
        #expect(error?.reason.contains(word) == true, "\(error?.reason ?? "")")
    }
}
