// Containers of installed apps on a simulated disk: their names, and how long they keep them.
import AssetsModel
import AssetsOS
import AssetsService
import AssetsStore
import BackgroundAssetsTesting
import Glibc
import Testing

@Suite("Simulated containers")
struct ContainerSimulationTests {
    private static let other = "org.example.other"

    /// A device with the scenario's app.
    private func installed(seed: UInt64) throws -> SimulatedDevice {
        let device = Scenario().device(seed: seed)
        try device.installAndSettle(Scenario())
        return device
    }

    /// Names of all containers, those of groups first.
    private func names(_ device: SimulatedDevice) throws -> [String] {
        try ContainerFolders.Kind.allCases.flatMap { try device.tree.list($0.rawValue) }
    }

    /// A disk that does not let containers go, for one process of the service.
    @Sendable private static func keepsContainers(_ call: MemoryTree.Call) -> Int32? {
        let isContainer = call.path.hasPrefix("Containers/") && call.path.split(separator: "/").count == 3
        return call.name == "remove" && isContainer ? EIO : nil
    }

    /// What nobody can guess of the names.
    private func endings(_ device: SimulatedDevice) throws -> [Substring] {
        try names(device).compactMap { $0.split(separator: "~").last }
    }

    @Test("Each container of each app has a random part of its own in its name")
    func different() throws {
        let device = try installed(seed: 1)
        device.staging.set("/apps/Other.app", .simulated(Self.other, manifestURL: Scenario.manifestURL))
        _ = try device.install("/apps/Other.app")
        try device.settle()
        let identifiers = try names(device).compactMap { $0.split(separator: "~").first }
        let apps = [Scenario.app, Self.other]
        #expect(identifiers == apps.map { "group.\($0)" } + apps.map { "\($0).Downloader" })
        let endings = try endings(device)
        #expect(Set(endings).count == 4)
        #expect(endings.allSatisfy { $0.count == 32 })
    }

    @Test("A restarted service finds the containers of the one before")
    func restart() throws {
        let device = try installed(seed: 2)
        let before = try names(device)
        try device.restart()
        try device.settle()
        #expect(try names(device) == before)
        #expect(device.moved("e1") != nil)
    }

    @Test("An app that is installed again after it was removed gets containers of other names")
    func again() throws {
        let device = try installed(seed: 3)
        let before = try endings(device)
        try device.call { try await $0.uninstall(Scenario.app) }
        #expect(try names(device) == [])
        _ = try device.install()
        try device.settle()
        let after = try endings(device)
        #expect(after.count == 2 && Set(before).isDisjoint(with: after))
        #expect(device.moved("e1") != nil)
    }

    @Test("Containers that could not be removed are not those of an app that is installed again; they go later")
    func left() throws {
        let device = try installed(seed: 4)
        device.tree.setFault(Self.keepsContainers)
        // Twice, so that a removal begins while the one before is still to be completed.
        for count in [4, 6] {
            let before = try names(device)
            try device.call { try await $0.uninstall(Scenario.app) }
            #expect(try names(device) == before)
            _ = try device.install()
            try device.settle()
            let after = try names(device)
            #expect(after.count == count && Set(after).isSuperset(of: before))
        }
        // Of three folders two are known to be on their way out, whichever comes first in the listing.
        let all = try names(device)
        try device.stop()
        device.tree.setFault(Self.keepsContainers)
        try device.start()
        try device.settle()
        #expect(try names(device) == all)
        try device.restart()
        try device.settle()
        #expect(try names(device).count == 2)
        #expect(device.moved("e1") != nil)
        #expect(try device.query { try $0.intents() } == [])
    }

    @Test("An app whose group another app shared has a container, whenever the other one is removed")
    func shared() throws {
        // Now and then the removal finds the other app between its containers and its row.
        for seed in UInt64(205)..<255 {
            let device = try installed(seed: seed)
            var app = AppDescription.simulated(Self.other, manifestURL: Scenario.manifestURL)
            (app.groups, app.sharedGroups) = ([Scenario.group], [Scenario.group])
            device.staging.set("/apps/Other.app", app)
            _ = try device.install("/apps/Other.app")
            let calls = device.tree.calls
            try device.loop.run(until: { device.tree.calls >= calls + Int(seed % 20) })
            try device.call { try await $0.uninstall(Scenario.app) }
            try device.settle()
            let containers = try device.tree.list("Containers/Group")
            #expect(containers.count == 1, "seed \(seed)")
            let caches = device.container(.group, of: Scenario.group) + "/Library/Caches"
            #expect((try? device.tree.list(caches)) == [".BackgroundAssets", "CACHEDIR.TAG"], "seed \(seed)")
        }
    }

    @Test("A container that somebody removed is there again after the next start")
    func removed() throws {
        let device = try installed(seed: 5)
        let container = device.container(.group, of: Scenario.group)
        try device.tree.remove(container)
        try device.restart()
        let made = device.container(.group, of: Scenario.group)
        #expect(made != container)
        #expect(try device.tree.list("\(made)/Library/Caches") == [".BackgroundAssets", "CACHEDIR.TAG"])
        #expect(try device.journal().contains { $0.event == .recovered && $0.detail.contains("container was gone") })
    }
}
