import AssetsModel
import Testing

@Suite("Memory of extensions")
struct MemoryRuleTests {
    private static let limit: Int64 = 12 << 20

    @Test("Its own pages, shared ones without a file and swapped ones count together")
    func sum() {
        var rule = MemoryRule(limit: Self.limit)
        #expect(rule.observe(MemoryUse(anonymous: 4 << 20, shared: 4 << 20, swapped: 4 << 20)) == .warn)
        #expect(rule.peak == 12 << 20)
        #expect(rule.observe(MemoryUse(anonymous: 4 << 20, shared: 4 << 20, swapped: (4 << 20) + 1)) == .tooMuch)
    }

    @Test("It is warned of once, from half of the limit on; beyond the limit it has too much")
    func steps() {
        var rule = MemoryRule(limit: Self.limit)
        #expect(rule.observe(MemoryUse(anonymous: (6 << 20) - 1)) == .fine)
        #expect(rule.observe(MemoryUse(anonymous: 6 << 20)) == .warn)
        #expect(rule.observe(MemoryUse(anonymous: 7 << 20)) == .fine)
        #expect(rule.observe(MemoryUse(anonymous: 1 << 20)) == .fine)
        #expect(rule.observe(MemoryUse(anonymous: 6 << 20)) == .fine)
        #expect(rule.observe(MemoryUse(anonymous: Self.limit)) == .fine)
        #expect(rule.observe(MemoryUse(anonymous: Self.limit + 1)) == .tooMuch)
        #expect(rule.peak == Self.limit + 1)
    }

    @Test("Who goes beyond the limit at once is not warned first")
    func atOnce() {
        var rule = MemoryRule(limit: Self.limit)
        #expect(rule.observe(MemoryUse(anonymous: 40 << 20)) == .tooMuch)
        #expect(rule.peak == 40 << 20)
    }
}
