// Room on disks of all sizes, against tables.
import AssetsModel
import Testing

private let kib: Int64 = 1 << 10
private let mib: Int64 = 1 << 20
private let gib: Int64 = 1 << 30

@Suite("Space")
struct SpacePolicyTests {
    @Test(
        "A twentieth stays free, at least 1 GiB and at most 10 GiB, and never more than a quarter",
        arguments: [
            (0, 0), (16 * mib, 4 * mib), (gib, 256 * mib), (4 * gib, gib), (10 * gib, gib), (20 * gib, gib),
            (100 * gib, 5 * gib), (200 * gib, 10 * gib), (8000 * gib, 10 * gib),
        ] as [(Int64, Int64)])
    func floor(total: Int64, expected: Int64) {
        #expect(SpacePolicy().floor(total: total) == expected)
    }

    @Test("Background downloads keep the floor, those that somebody waits for half of it")
    func classes() {
        let policy = SpacePolicy()
        #expect(policy.kept(for: .background, total: 100 * gib) == 5 * gib)
        #expect(policy.kept(for: .foreground, total: 100 * gib) == 5 * gib / 2)
        #expect(policy.kept(for: .essential, total: 100 * gib) == 5 * gib / 2)
        #expect(SpacePolicy(ownFloor: 50 * gib).kept(for: .background, total: 100 * gib) == 50 * gib)
        #expect(SpacePolicy(ownFloor: 0).kept(for: .essential, total: 100 * gib) == 0)
    }

    @Test(
        "What is missing is told to the byte",
        arguments: [
            (gib, TransferClass.background, 6 * gib, Int64(0), Int64(0)), (gib, .background, 6 * gib - 1, 0, 1),
            (gib, .background, 5 * gib, 0, gib), (gib, .background, 0, 0, 6 * gib), (gib, .essential, 4 * gib, 0, 0),
            (gib, .essential, 2 * gib, 0, 3 * gib / 2), (gib, .background, 6 * gib, 1, 1),
            (gib, .background, 20 * gib, 14 * gib, 0), (gib, .background, 20 * gib, 14 * gib + 1, 1),
            (0, .background, 5 * gib, 0, 0),
            // Sizes that an app made up.
            (.max, .background, 6 * gib, 0, .max - gib), (.max, .background, 0, .max, .max),
            (gib, .background, 0, .max, .max),
        ] as [(Int64, TransferClass, Int64, Int64, Int64)])
    func shortage(needed: Int64, transferClass: TransferClass, free: Int64, promised: Int64, expected: Int64) {
        let view = SpaceView(free: free, total: 100 * gib)
        #expect(SpacePolicy().shortage(of: needed, for: transferClass, in: view, promised: promised) == expected)
    }

    @Test("A lack of space says how much is missing")
    func interruption() {
        let lacking = Interruption.lackingSpace(1234, in: SpaceView(free: 1000, total: gib))
        #expect(lacking.kind == .storage && lacking.reason == .space && lacking.wantedFree == 2234)
        #expect(Interruption.lackingSpace(.max, in: SpaceView(free: 1000, total: gib)).wantedFree == .max)
        #expect(lacking.failure.reason == "1234 more bytes must be free on the device's disk")
    }
}

@Suite("Settings")
struct DeviceSettingsTests {
    @Test(
        "Values are taken as people write them",
        arguments: [
            (DeviceSettings.Name.developerMode, "on", "on"), (.developerMode, "off", "off"),
            (.proxy, "none", "none"), (.proxy, "http://proxy.example.com:3128", "http://proxy.example.com:3128"),
            (.patience, "90s", "90s"), (.patience, "15min", "900s"), (.patience, "2h", "7200s"),
            (.patience, "7d", "604800s"), (.patience, "60", "60s"), (.freeSpace, "2GiB", "2147483648"),
            (.freeSpace, "500MB", "500000000"), (.freeSpace, "0", "0"), (.freeSpace, "default", "default"),
            (.backgroundRate, "64KiB", "65536"), (.backgroundRate, "2MB/s", "2000000"),
            (.backgroundRate, "default", "default"),
        ])
    func values(name: DeviceSettings.Name, text: String, expected: String) {
        var settings = DeviceSettings()
        let isTaken = settings.set(name, to: text)
        #expect(isTaken && settings.text(of: name) == expected)
        // What is stored is read again.
        #expect(DeviceSettings(stored: [name.rawValue: settings.text(of: name)]) == settings)
        let isReset = settings.set(name, to: DeviceSettings.standard)
        #expect(isReset && settings == DeviceSettings())
    }

    @Test(
        "Other values are refused and change nothing",
        arguments: [
            (DeviceSettings.Name.developerMode, "maybe"), (.proxy, "ftp://x"), (.proxy, ""), (.patience, "0"),
            (.patience, "31d"), (.patience, "-5s"), (.patience, "soon"), (.patience, "99999999999999999999d"),
            (.freeSpace, "-1"), (.freeSpace, "much"), (.freeSpace, "9999999999TiB"), (.freeSpace, ""),
            (.backgroundRate, "0"), (.backgroundRate, "65535"), (.backgroundRate, "fast"), (.backgroundRate, "/s"),
        ])
    func refusals(name: DeviceSettings.Name, text: String) {
        var settings = DeviceSettings()
        let isTaken = settings.set(name, to: text)
        #expect(!isTaken && settings == DeviceSettings())
        #expect(DeviceSettings(stored: [name.rawValue: text]) == DeviceSettings())
    }

    @Test("The credentials of a proxy are stored and not shown")
    func credentials() {
        var settings = DeviceSettings()
        let isTaken = settings.set(.proxy, to: "http://me:secret@proxy.example.com:3128")
        #expect(isTaken && settings.text(of: .proxy).contains("secret"))
        #expect(settings.shown(.proxy) == "http://proxy.example.com:3128 (with a user name)")
    }
}
