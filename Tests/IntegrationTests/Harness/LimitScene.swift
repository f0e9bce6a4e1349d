// The app whose extension goes to its limits, and what is looked at of its process.
import AssetsModel
import AssetsOS
import AssetsStore
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

extension TestDevice {
    /// Installs the app with a plan; its manifest has so many bytes more.
    func install(
        limits plan: LimitPlan, from server: TestServer, padding: Int = 0,
        _ change: (inout FixtureBundle) -> Void = { _ in }
    ) async throws {
        let manifest = try server.put("manifest.json", plan.encoded(padding: padding))
        var bundle = FixtureBundle(manifestURL: manifest)
        bundle.extensionProgram = Products.limitExtension
        change(&bundle)
        let result = try await install(try bundle.write(to: folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
        #expect(try await apps().map(\.launchable) == [true])
    }

    /// What the tool says of the app's extension.
    func extensionLedger(of app: String = FixtureBundle.identifier) async throws -> DeviceInterface.Extension.Reply {
        let result = try await cli("extension", app)
        try #require(result.exit == .exited(0), "\(result.errors)")
        return try #require(try result.values(DeviceInterface.Extension.Reply.self).first)
    }

    /// The place of the row after this one.
    func place(after row: JournalEntry) -> Int { (journal.all.firstIndex { $0.number == row.number } ?? -1) + 1 }

    /// The extension's process; nil while there is none.
    func extensionProcess() async throws -> Int32? {
        let children = Processes.children(of: try await process())
        #expect(children.count <= 1)
        return children.first
    }

    /// Ends the service, has the app's extension have run for so long, and starts it again.
    func use(_ runtime: Duration, of app: String = FixtureBundle.identifier) async throws {
        var ledger = RuntimeLedger()
        ledger.charge(runtime, at: SystemCalendarClock().now)
        try await restart(after: [.saveRuntime(app: app, ledger)])
    }

    /// Ends the service, changes what it wrote down, and starts it again.
    func restart(after changes: [StoreChange]) async throws {
        try await terminate()
        let loop = try EventLoop.start(name: "changes")
        let store = try await Store(path: root + "/device.sqlite", on: loop)
        _ = try await store.apply(changes)
        try await store.close()
        loop.stop()
        try await start(developerMode: false)
    }
}
