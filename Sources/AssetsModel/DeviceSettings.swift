// What the device's user has set, as it is written, stored and shown.

/// The settings of a device.
package struct DeviceSettings: Hashable, Sendable {
    /// Their names, for people and in the store.
    package enum Name: String, Hashable, Sendable, CaseIterable {
        case developerMode = "developer-mode"
        case proxy
        case patience
        case freeSpace = "free-space"
        case backgroundRate = "background-rate"
    }

    /// The word for the value that holds where nobody has set one.
    package static let standard = "default"

    package private(set) var isDeveloperModeOn = false
    /// A word or URL of `ProxySettings`.
    package private(set) var proxy = ProxySettings.fromEnvironment
    /// How long a background download is tried without receiving a byte.
    package private(set) var patience = PolicyNumbers.givesUpAfter
    /// Bytes that background downloads leave free; nil for a share of the disk.
    package private(set) var freeSpace: Int64?
    /// Bytes a second for all background downloads together; nil for no limit.
    package private(set) var backgroundRate: Int64?

    package init() {}

    /// What the store holds; words of another version count as not set.
    package init(stored: [String: String]) {
        for name in Name.allCases {
            if let text = stored[name.rawValue] { _ = set(name, to: text) }
        }
    }

    /// False for a text that is no value of the setting.
    package mutating func set(_ name: Name, to text: String) -> Bool {
        let new = DeviceSettings()
        switch name {
        case .developerMode:
            guard let isOn = ["on": true, "off": false, Self.standard: new.isDeveloperModeOn][text] else {
                return false
            }
            isDeveloperModeOn = isOn
        case .proxy:
            guard let value = text == Self.standard ? new.proxy : ProxySettings.setting(text) else { return false }
            proxy = value
        case .patience:
            guard let value = text == Self.standard ? new.patience : Quantity.time(text),
                (PolicyNumbers.patienceMin...PolicyNumbers.patienceMax).contains(value)
            else { return false }
            patience = value
        case .freeSpace:
            guard text != Self.standard else {
                freeSpace = nil
                return true
            }
            guard let value = Quantity.bytes(text) else { return false }
            freeSpace = value
        case .backgroundRate:
            guard text != Self.standard else {
                backgroundRate = nil
                return true
            }
            guard let value = Quantity.rate(text), value >= PolicyNumbers.backgroundRateMin else { return false }
            backgroundRate = value
        }
        return true
    }

    /// As `set` takes it: for the store.
    package func text(of name: Name) -> String {
        switch name {
        case .developerMode: isDeveloperModeOn ? "on" : "off"
        case .proxy: proxy
        case .patience: "\(patience.components.seconds)s"
        case .freeSpace: freeSpace.map { "\($0)" } ?? Self.standard
        case .backgroundRate: backgroundRate.map { "\($0)" } ?? Self.standard
        }
    }

    /// For people: without credentials.
    package func shown(_ name: Name) -> String {
        guard name == .proxy, let server = ProxyServer(proxy), proxy.contains("://") || proxy.contains(":") else {
            return text(of: name)
        }
        return server.description + (server.user == nil ? "" : " (with a user name)")
    }

    /// What may be written for it.
    package static func values(of name: Name) -> String {
        switch name {
        case .developerMode: "on or off"
        case .proxy: "a URL of http, https, socks5 or socks5h, none, or environment"
        case .patience: "a time from 1s to 30d, such as 90s, 15min, 24h or 7d"
        case .freeSpace: "a size such as 500MB or 2GiB, or default"
        case .backgroundRate: "bytes a second such as 500KB or 2MiB, at least 64KiB, or default for no limit"
        }
    }
}

/// Sizes and times as people write them.
package enum Quantity {
    private static let sizes: [(String, Int64)] = [
        ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("KB", 1000), ("kB", 1000),
        ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000), ("B", 1), ("", 1),
    ]
    private static let times: [(String, Int64)] = [
        ("min", 60), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("", 1),
    ]

    /// "2GiB"; nil for anything else, also for what is too large to count.
    package static func bytes(_ text: String) -> Int64? { read(text, sizes) }

    /// Bytes a second: "2MiB" or "2MiB/s".
    package static func rate(_ text: String) -> Int64? {
        bytes(text.hasSuffix("/s") ? String(text.dropLast(2)) : text)
    }

    /// "15min".
    package static func time(_ text: String) -> Duration? { read(text, times).map { .seconds($0) } }

    private static func read(_ text: String, _ units: [(String, Int64)]) -> Int64? {
        for (unit, factor) in units where text.hasSuffix(unit) {
            guard let number = ASCIIText.number(text.dropLast(unit.count)) else { continue }
            let (product, overflow) = number.multipliedReportingOverflow(by: factor)
            return overflow ? nil : product
        }
        return nil
    }
}
