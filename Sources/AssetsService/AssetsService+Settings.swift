// What the device's user sets.
package import AssetsModel
internal import AssetsStore
internal import AssetsTransfer

extension AssetsService {
    package var isDeveloperModeOn: Bool { settings.isDeveloperModeOn }

    package func setDeveloperMode(_ isOn: Bool) async throws(AssetsError) {
        try await set(.developerMode, to: isOn ? "on" : "off")
    }

    /// Names and values of all settings, as people may see them.
    package var shownSettings: [(name: String, value: String)] {
        DeviceSettings.Name.allCases.map { ($0.rawValue, settings.shown($0)) }
    }

    /// Changes a setting; downloads that start from now on go by it, and by a rate those that run as well.
    package func set(_ name: String, to text: String) async throws(AssetsError) {
        guard let name = DeviceSettings.Name(rawValue: name) else {
            throw AssetsError(
                .usage, "there is no setting \(name.prefix(40))", remedy: "see: backgroundassets settings")
        }
        try await set(name, to: text)
    }

    private func set(_ name: DeviceSettings.Name, to text: String) async throws(AssetsError) {
        var new = settings
        guard new.set(name, to: text) else {
            // The text is not shown: it may be a URL with credentials.
            throw AssetsError(
                .usage, "that is no value of \(name.rawValue)", remedy: "name \(DeviceSettings.values(of: name))")
        }
        guard new != settings else { return }
        journal(.settingChanged, name == .developerMode ? .developerMode : .requested, described(name, new))
        try await commit([.setSetting(name: name.rawValue, value: new.text(of: name))])
        settings = new
        switch name {
        case .developerMode, .patience: break
        case .proxy:
            takeProxies()
            await retryWaiting(for: Reason.ofNetwork)
        case .freeSpace: await retryWaiting(for: [.space])
        case .backgroundRate: await takeBackgroundRate()
        }
    }

    private func described(_ name: DeviceSettings.Name, _ new: DeviceSettings) -> String {
        name == .developerMode
            ? "Developer Mode is \(new.shown(name))" : "\(name.rawValue) is \(new.shown(name))"
    }

    /// All background transfers together go by the setting from now on, also those that run.
    func takeBackgroundRate() async { await seams.transfers.setBackgroundRate(settings.backgroundRate) }

    /// The service's variables and the setting say which proxies there are.
    func takeProxies() {
        proxies = ProxySettings(environment: seams.environment, setting: settings.proxy)
    }
}
