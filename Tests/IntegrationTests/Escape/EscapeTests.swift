// What an extension cannot reach, and which layers of its sandbox hold it.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Testing

@Suite(.serialized, .plainOnly("a sanitizer's memory and files are not those of an extension")) struct EscapeTests {
    private typealias Trial = EscapeSuite.Trial
    /// What the sandbox is known not to hold; docs/sandbox-probes.md says why.
    private static let weaknesses = ["existence.other-app"]

    @Test("No probe of an extension reaches anything")
    func denied() async throws {
        let suite = try await EscapeSuite.load()
        let probes = suite.probes.filter { $0.isHeld(by: suite.available) }
        Self.tellWhatIsMissing(suite, probes)
        let found = try await suite.verdicts(of: probes.map { Trial(probe: $0, layers: .all, moment: .inside) })
        for (trial, verdict) in found where verdict.isApplicable {
            #expect(verdict.isDenied, "\(trial.probe) \(trial.probe.says): \(verdict)")
        }
        // The kernel would have denied some of them anyway.
        let ours = found.filter { $0.key.probe.ordinary == nil && $0.value.isDenied }
        #expect(ours.count >= 100)
        #expect(suite.probes.filter { !$0.isHeld(by: .all) }.map(\.name) == Self.weaknesses)
    }

    @Test("Code that runs before the second stage gains nothing by executing itself again")
    func again() async throws {
        let suite = try await EscapeSuite.load()
        // What the second stage alone holds is what a program needs to start: the same files, in the same box.
        let first = suite.available.subtracting(.stage2)
        let probes = suite.probes.filter { $0.isHeld(by: first) }
        let found = try await suite.verdicts(of: probes.map { Trial(probe: $0, layers: first, moment: .again) })
        for (trial, verdict) in found where verdict.isApplicable {
            #expect(verdict.isDenied, "\(trial.probe) \(trial.probe.says): \(verdict)")
        }
    }

    @Test("Each layer holds what it is said to hold, also alone; without all of them a probe reaches what it is for")
    func layers() async throws {
        let suite = try await EscapeSuite.load()
        let probes = suite.probes.filter { $0.layers.union($0.together).isSubset(of: suite.available.union(.kernel)) }
        Self.tellWhatIsMissing(suite, probes)
        var trials: [Trial] = []
        for probe in probes {
            let holding = probe.layers.union(probe.together).subtracting(.kernel)
            for layer in EscapeLayers.each where holding.contains(layer) {
                trials.append(Trial(probe: probe, layers: layer))
                trials.append(Trial(probe: probe, layers: .all.subtracting(layer)))
            }
            trials.append(Trial(probe: probe, layers: .all.subtracting(holding)))
        }
        let found = try await suite.verdicts(of: trials)
        for (trial, verdict) in found where verdict.isApplicable {
            #expect(
                trial.probe.isHeld(by: trial.layers) ? verdict.isDenied : verdict.isReached,
                "\(trial.probe), said to be held by \(trial.probe.layers), with \(trial.layers): \(verdict)")
        }
    }

    @Test("The documented table is that of the probes")
    func documented() async throws {
        let table = try await EscapeSuite.table()
        let document = try String(contentsOfFile: Products.document("sandbox-probes.md"), encoding: .utf8)
        let rows = document.split(separator: "\n").filter { $0.hasPrefix("| ") }.map(String.init)
        #expect(rows == table, "scripts/sandbox-probes writes it anew")
    }

    @Test("A library of probes from any folder is run beside ours")
    func others() async throws {
        let folder = try TestFolder()
        defer { folder.remove() }
        let library = folder.path + "/libSample.so"
        try FileManager.default.copyItem(atPath: Products.folder + "/libEscapeSample.so", toPath: library)
        let suite = try await EscapeSuite.load(libraries: [library])
        let probe = try #require(suite.probes.first { $0.name == "sample.groups" })
        let (inside, without) = (
            Trial(probe: probe, layers: .all, moment: .inside), Trial(probe: probe, layers: [], moment: .inside)
        )
        let found = try await suite.verdicts(of: [inside, without])
        #expect(found[inside]?.isDenied == true)
        #expect(found[without]?.isReached == true)
    }

    /// Each is held by one layer alone, which the service therefore has to enter.
    private static let heldByOne = [
        "priorities.dump-filter", "kernel.io-uring", "existence.stat", "execution.itself", "memory.heap",
        "loader.variables",
    ]

    @Test("An extension that the service starts is in the same box", arguments: heldByOne)
    func service(probe: String) async throws {
        try await TestDevice.run { device in
            let secret = device.folder + "/secret"
            try Files.write(secret, Data("secret".utf8))
            let server = try await device.server()
            let plan = FixturePlan(downloads: [])
            var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            bundle.extensionProgram = Products.folder + "/EscapeExtension"
            let home = "\(device.root)/Containers/Extension/\(bundle.extensionIdentifier)/home"
            let request = "probe \(probe)\nmoment inside\nsecret \(secret)\n"
            try Files.write(home + "/escape-request", Data(request.utf8))
            _ = try await device.install(try bundle.write(to: device.folder))
            let row = try await device.row("extension-output") {
                $0.detail.hasPrefix("escape-probe: ") && !$0.detail.hasPrefix("escape-probe: begin")
            }
            #expect(row.detail.hasPrefix("escape-probe: denied"), "\(row.detail)")
            await server.stop()
        }
    }

    /// Nothing is left out silently.
    private static func tellWhatIsMissing(_ suite: EscapeSuite, _ probes: [EscapeProbe]) {
        let left = Set(suite.probes).subtracting(probes).filter { $0.isHeld(by: .all) }.map(\.name).sorted()
        guard !left.isEmpty else { return }
        let missing = EscapeLayers.all.subtracting(suite.available)
        let line = "\n*** NOT RUN, for want of \(missing): \(left.joined(separator: ", ")) ***\n\n"
        FileHandle.standardError.write(Data(line.utf8))
    }
}

extension EscapeSuite.Trial {
    /// In the developer's code where the second stage is entered; else before the runtime's main would enter it.
    init(probe: EscapeProbe, layers: EscapeLayers) {
        self.init(probe: probe, layers: layers, moment: layers.contains(.stage2) ? .inside : .before)
    }
}
