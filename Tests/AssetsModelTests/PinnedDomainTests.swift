// Pinned keys: which hosts they are for.
import AssetsModel
import Testing

@Suite("Pinned domains")
struct PinnedDomainTests {
    private static let domains = [
        PinnedDomain(host: "example.com", includesSubdomains: true, keys: ["wide"]),
        PinnedDomain(host: "cdn.example.com", includesSubdomains: false, keys: ["narrow"]),
        PinnedDomain(host: "alone.org", includesSubdomains: false, keys: ["alone"]),
    ]

    @Test(
        "The closest domain decides",
        arguments: [
            ("example.com", ["wide"]), ("cdn.example.com", ["narrow"]), ("a.cdn.example.com", ["wide"]),
            ("badexample.com", []), ("alone.org", ["alone"]), ("www.alone.org", []), ("com", []),
        ])
    func closest(host: String, keys: [String]) {
        #expect(PinnedDomain.keys(of: host, in: Self.domains) == keys)
    }

    @Test("Only 32 bytes in Base64 are a key")
    func keys() {
        let key = String(repeating: "A", count: 43) + "="
        #expect(PinnedDomain.isKey(key))
        for text in ["", "=", String(key.dropLast()), key + "=", ";" + key.dropFirst(), "sha256//" + key] {
            #expect(!PinnedDomain.isKey(text))
        }
    }
}
