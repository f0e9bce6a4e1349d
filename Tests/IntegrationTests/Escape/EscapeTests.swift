// What an extension cannot reach, and which layers of its sandbox hold it.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Testing

@Suite(.serialized, .plainOnly("a sanitizer's memory and files are not those of an extension")) struct EscapeTests {
    private typealias Trial = EscapeSuite.Trial

    @Test("No probe of an extension reaches anything")
    func denied() async throws {
        let suite = try await EscapeSuite.load()
        let probes = suite.probes.filter { $0.isHeld(by: suite.available) }
        let others = suite.probes.filter { !$0.isHeld(by: suite.available) }.map(\.name)
        Self.tell("NOT RUN, for want of a layer that holds them", others)
        let found = try await suite.verdicts(
            of: Set(probes.map { Trial(probe: $0, layers: suite.available, moment: .inside) }))
        for (trial, verdict) in found where verdict.isApplicable {
            #expect(verdict.isDenied, "\(trial.probe) \(trial.probe.says): \(verdict)")
        }
        Self.tellWhatIsNotApplicable(found)
        // The kernel would have denied some of them anyway.
        let ours = found.filter { !$0.key.probe.layers.contains(.kernel) && $0.value.isDenied }
        #expect(ours.count >= 100)
        #expect(suite.probes.filter { $0.declared.isEmpty && $0.together.isEmpty }.map(\.name) == [])
    }

    @Test("Code that runs before the second stage gains nothing by executing itself again")
    func again() async throws {
        let suite = try await EscapeSuite.load()
        // What the second stage alone holds is what a program needs to start: the same files, in the same box.
        let first = suite.available.subtracting(.stage2)
        let probes = suite.probes.filter { $0.isHeld(by: first) }
        let found = try await suite.verdicts(
            of: Set(probes.map { Trial(probe: $0, layers: first, moment: .again) }))
        for (trial, verdict) in found where verdict.isApplicable {
            #expect(verdict.isDenied, "\(trial.probe) \(trial.probe.says): \(verdict)")
        }
    }

    @Test("Each layer holds what it is said to hold, also alone; without all of them a probe reaches what it is for")
    func layers() async throws {
        let suite = try await EscapeSuite.load()
        Self.tell("NOT RUN with what this machine lacks", EscapeLayers.all.subtracting(suite.available).names)
        Self.tell(
            "NOT SHOWN to get through without layers, because the machine refuses everybody",
            suite.probes.compactMap { probe in probe.refusal.map { "\(probe) (\($0))" } })
        let found = try await suite.verdicts(of: Set(suite.probes.flatMap { Self.trials(of: $0, in: suite) }))
        for (trial, verdict) in found where verdict.isApplicable {
            let isAsSaid = trial.probe.isHeld(by: trial.layers) ? verdict.isDenied : verdict.isReached
            #expect(
                isAsSaid && (!trial.isFilterMarked || verdict.isUnknownCall),
                "\(trial.probe), said to be held by \(trial.probe.layers), with \(trial.layers): \(verdict)")
        }
        Self.tellWhatIsNotApplicable(found)
    }

    /// With each layer that holds it alone, without each of these, and without all of them.
    private static func trials(of probe: EscapeProbe, in suite: EscapeSuite) -> [Trial] {
        let all = suite.available
        let holding = probe.layers.union(probe.together)
        var trials = [Trial(probe: probe, layers: all.subtracting(holding).subtracting(probe.varies))]
        for layer in EscapeLayers.each where holding.intersection(all).contains(layer) {
            trials.append(Trial(probe: probe, layers: all.subtracting(layer)))
            var alone = Trial(probe: probe, layers: layer)
            // The kernel denies it as well, after the filter.
            alone.isFilterMarked = layer == .seccomp && probe.layers.contains(.kernel)
            trials.append(alone)
        }
        return trials
    }

    @Test("Landlock holds a probe from the version on that is named, and not before")
    func versions() async throws {
        let suite = try await EscapeSuite.load()
        let probes = suite.probes.filter {
            $0.declared.contains(.landlock) && $0.landlockVersion > 1 && $0.refusal == nil
        }
        let known = probes.filter { $0.landlockVersion <= suite.landlockVersion }
        Self.tell("NOT RUN, for want of a younger Landlock", Set(probes).subtracting(known).map(\.name))
        let trials = known.flatMap { probe in
            [probe.landlockVersion - 1, probe.landlockVersion].map { version in
                Trial(probe: probe, layers: .landlock, moment: .before, landlockVersion: version)
            }
        }
        for (trial, verdict) in try await suite.verdicts(of: Set(trials)) where verdict.isApplicable {
            let isNamed = trial.landlockVersion == trial.probe.landlockVersion
            #expect(
                isNamed ? verdict.isDenied : verdict.isReached,
                "\(trial.probe) with Landlock \(trial.landlockVersion ?? 0): \(verdict)")
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
        let suite = try await EscapeSuite.load()
        let listed = try #require(suite.probes.first { $0.name == probe })
        guard listed.isHeld(by: suite.available) else {
            return Self.tell("NOT RUN by the service, for want of the layer that holds it", [probe])
        }
        try await TestDevice.run(starting: false) { device in
            let secret = device.folder + "/secret"
            try Files.write(secret, Data("secret".utf8))
            let server = try await device.server()
            let plan = FixturePlan(downloads: [])
            var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
            bundle.extensionProgram = Products.folder + "/EscapeExtension"
            let container = try device.makeContainer(.appExtension, of: bundle.extensionIdentifier)
            let request = "probe \(probe)\nmoment inside\nsecret \(secret)\n"
            try Files.write(container + "/home/escape-request", Data(request.utf8))
            try await device.start()
            _ = try await device.install(try bundle.write(to: device.folder))
            let row = try await device.row("extension-output") {
                $0.detail.hasPrefix("escape-probe: ") && !$0.detail.hasPrefix("escape-probe: begin")
            }
            #expect(row.detail.hasPrefix("escape-probe: denied"), "\(row.detail)")
            await server.stop()
        }
    }

    // MARK: Nothing is left out silently

    private static func tell(_ what: String, _ names: [String]) {
        guard !names.isEmpty else { return }
        let line = "\n*** \(what): \(names.sorted().joined(separator: ", ")) ***\n\n"
        FileHandle.standardError.write(Data(line.utf8))
    }

    private static func tellWhatIsNotApplicable(_ found: [Trial: EscapeVerdict]) {
        let lines = found.compactMap { trial, verdict in
            if case .notApplicable(let why) = verdict { "\(trial.probe) (\(why))" } else { nil }
        }
        tell("NOT APPLICABLE here", Array(Set(lines)))
    }
}

extension EscapeSuite.Trial {
    /// In the developer's code where the second stage is entered; else before the runtime's main would enter it.
    init(probe: EscapeProbe, layers: EscapeLayers) {
        self.init(probe: probe, layers: layers, moment: layers.contains(.stage2) ? .inside : .before)
    }
}
