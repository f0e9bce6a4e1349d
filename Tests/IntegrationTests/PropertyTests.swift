// What the product promises about itself.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

@Suite struct PropertyTests {
    @Test(
        "Service, tool and launcher need no Foundation and no Swift runtime from elsewhere",
        .plainOnly("a sanitizer's libraries are linked in"))
    func libraries() async throws {
        for program in [Products.service, Products.tool, Products.launcher] {
            let result = try await Program.run("/usr/bin/env", ["readelf", "-d", program])
            #expect(result.exit == .exited(0), "\(result.errors)")
            let needed = result.output.filter { $0.contains("(NEEDED)") }
            // The launcher needs nothing at all: in its sandbox nothing else can be loaded.
            #expect(needed.isEmpty == (program == Products.launcher), "\(program): \(needed)")
            for word in ["Foundation", "swift", "dispatch", "Blocks"] {
                #expect(!needed.contains { $0.contains(word) }, "\(program): \(needed)")
            }
        }
    }

    @Test(
        "An idle service has its named threads, no connection to a server, and makes no context switch",
        .plainOnly("a sanitizer has threads of its own, which wake up"),
        .shows("B72", by: "backgroundassets install"))
    func idle() async throws {
        try await TestDevice.run { device in
            let server = try await device.server()
            let item = try server.item("a.pack", size: 1000, essential: true)
            let bundle = FixtureBundle(
                manifestURL: try server.put("manifest.json", FixturePlan(downloads: [item]).encoded()))
            #expect(try await device.install(try bundle.write(to: device.folder)).exit == .exited(0))
            try await device.told(1)
            // The end of the extension is the last thing that is planned.
            let count = device.journal.count
            try await device.row("extension-ended", from: count)
            let process = try await device.process()
            try await device.unfollow()
            // Time for what follows the last client's end: a last row of the journal.
            try await interval(.seconds(1))
            let before = try switches(of: process)
            // The kernel keeps 15 characters of a name.
            #expect(
                Set(before.keys) == ["backgroundasset", "transfer", "write", "background", "hash", "disk", "unpack"])
            #expect(connections(of: process) == 0)
            try await interval(.seconds(10))
            let after = try switches(of: process)
            #expect(before == after)
            #expect(Processes.children(of: process).isEmpty)
            await server.stop()
        }
    }

    /// Connections to servers that a process holds, in whatever state.
    private func connections(of process: Int32) -> Int {
        let tables = ["tcp", "tcp6"].compactMap { Files.read("/proc/net/\($0)") }
        let lines = tables.flatMap { String(decoding: $0, as: UTF8.self).split(separator: "\n").dropFirst() }
        let inodes = lines.compactMap { line -> String? in
            let fields = line.split(separator: " ")
            return fields.count > 9 ? "socket:[\(fields[9])]" : nil
        }
        let all = Set(inodes)
        return Files.names(in: "/proc/\(process)/fd").count { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/fd/\(name)")
            return target.map(all.contains) ?? false
        }
    }

    /// Lets an interval pass that is measured over; nothing is waited for.
    private func interval(_ length: Duration) async throws {
        try await blocking { _ = poll(nil, 0, Int32(length / .milliseconds(1))) }
    }

    /// Voluntary and involuntary context switches of each thread, by its name.
    private func switches(of process: Int32) throws -> [String: Int] {
        var result: [String: Int] = [:]
        for task in Files.names(in: "/proc/\(process)/task") {
            let data = try #require(Files.read("/proc/\(process)/task/\(task)/status"))
            var name = ""
            for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
                let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                if parts.first == "Name" { name = parts.last ?? "" }
                if parts.first?.hasSuffix("ctxt_switches") == true {
                    result[name, default: 0] += Int(parts.last ?? "") ?? 0
                }
            }
        }
        return result
    }

    @Test(
        "An app and a library of its own that uses the framework too have one manager",
        .shows("B11", by: "BADownloadManager.shared"))
    func oneManager() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        try Files.write(
            folder.path + "/Level.swift",
            Data(
                """
                import BackgroundAssets
                public func managerOfLibrary() -> BADownloadManager { BADownloadManager.shared }
                """.utf8))
        try Files.write(
            folder.path + "/main.swift",
            Data(
                """
                import BackgroundAssets
                import Level
                print(managerOfLibrary() === BADownloadManager.shared)
                """.utf8))
        try await compile(
            ["-emit-library", "-emit-module", "-module-name", "Level", "-o", "libLevel.so", "Level.swift"],
            in: folder.path)
        try await compile(
            [
                "-I", ".", "-L", ".", "-lLevel", "-Xlinker", "-rpath", "-Xlinker", folder.path, "-o", "app",
                "main.swift",
            ],
            in: folder.path)
        let result = try await Program.run(folder.path + "/app", [], environment: ["HOME": folder.path])
        #expect(result.output == ["true"], "\(result.errors)")
    }

    private func compile(_ words: [String], in folder: String) async throws {
        let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().path
        let products = Products.folder
        let result = try await Program.run(
            "/usr/bin/env",
            [
                "swiftc", "-swift-version", "6", "-I", products + "/Modules",
                "-Xcc", "-I" + package + "/Sources/CLinux/include",
                "-Xcc", "-fmodule-map-file=" + products + "/CLinux.build/module.modulemap",
                "-Xcc", "-fmodule-map-file=" + products + "/CRepair.build/module.modulemap",
                "-L", products, "-lBackgroundAssets", "-Xlinker", "-rpath", "-Xlinker", products,
                "-module-cache-path", folder + "/modules",
            ] + (Sanitizer.name.map { ["-sanitize=" + $0] } ?? []) + words, folder: folder, within: .seconds(300))
        try #require(result.exit == .exited(0), "\(result.errors.joined(separator: "\n"))")
    }
}
