// placeholder until the installer's version arrives
package struct DomainAllowList: Sendable {
    package init(_ entries: [String]) {}
    package func admits(_ host: String) -> Bool { true }
}
