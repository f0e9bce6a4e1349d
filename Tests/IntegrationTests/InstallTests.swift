// The main path: from a bundle to an app with its assets.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Testing

@Suite struct InstallTests {
    @Test("An app is installed from a folder, its essential assets first, the others after the gate has opened")
    func folder() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let essential = try server.item("base.pack", size: 300_000, essential: true)
            let later = try server.item("level 2.pack", size: 200_000)
            let manifest = try server.put("manifest.json", FixturePlan(downloads: [essential, later]).encoded())
            let app = try FixtureBundle(manifestURL: manifest).write(to: device.folder)

            let result = try await device.install(app)
            #expect(result.exit == .exited(0), "\(result.errors)")
            let updates = try result.values(DeviceInterface.InstallUpdate.self)
            #expect(updates.last?.phase == "launchable")
            try await device.row("message-closed")
            await server.stop()
        }
    }
}
