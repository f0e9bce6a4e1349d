// Where probes of one thread run one after the other: a folder, and the boxes that the service would make for a device in
// it.
import AssetsExtensionHost
import AssetsOS
import AssetsSandbox
import CLinux
import Foundation
import Glibc

/// Used on one thread, which lives as long as it: extensions die with the thread that started them.
final class EscapeStage {
    /// What is left open in this process, as the service has files open while it starts extensions.
    private let leftOpen: [Int32]
    private let folder: TestFolder
    private let sandbox: ExtensionSandbox
    private let libraries: [String]
    private let repairLibrary: String?
    /// The scene of the last probe, where that was denied and everything is as it was.
    private var untouched: EscapeScene?

    var landlockVersion: Int32 { sandbox.landlockVersion }
    var layers: EscapeLayers { sandbox.layers.reduce([.limits, .environment]) { $0.union(EscapeLayers($1)) } }

    /// - Parameter libraries: Paths of libraries of probes that go into the bundle.
    init(libraries: [String]) throws {
        self.libraries = libraries
        folder = try TestFolder()
        try Files.makeFolder(folder.path + "/device")
        repairLibrary = RepairLibrary.path(besideExecutablesIn: Products.folder)
        sandbox = try ExtensionSandbox(
            root: folder.path + "/device", launcher: Products.launcher, repairLibrary: repairLibrary)
        let opened = folder.path + "/open"
        try Files.write(opened + "/secret", Data("secret".utf8))
        leftOpen = [
            try check("open") { open(opened, O_RDONLY | O_DIRECTORY) },
            try check("open") { open(opened + "/secret", O_RDWR) },
            try check("socket") { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) },
        ]
    }

    deinit {
        untouched?.remove()
        for descriptor in leftOpen { close(descriptor) }
        folder.remove()
    }

    /// Runs a probe in a scene as if it were new.
    func verdict(of trial: EscapeSuite.Trial) throws -> EscapeVerdict {
        let scene = try untouchedScene()
        var isUntouched = false
        // What was reached may have left more behind than is looked for.
        defer { if isUntouched { untouched = scene } else { scene.remove() } }
        try scene.ask(trial.probe.name, trial.moment)
        let run = try run(in: scene, layers: trial.layers) { box in
            if let version = trial.landlockVersion { box.landlock = LandlockAbilities(version: version) }
            if trial.isFilterMarked { box.filter = EscapeFilter.refusing(by: ENOSYS, box.filter) }
        }
        let verdict = EscapeVerdict(
            of: trial, output: run.output, exit: run.exit, signal: run.signal, damage: scene.damage())
        isUntouched = verdict.isDenied
        return verdict
    }

    private func untouchedScene() throws -> EscapeScene {
        guard let scene = untouched else { return try EscapeScene(in: folder.path, libraries: libraries) }
        untouched = nil
        do { try scene.clearOwnFolders() } catch {
            scene.remove()
            throw error
        }
        return scene
    }

    /// What the fixture extension prints for a request that stands for no probe.
    func answer(to request: String) throws -> [String] {
        let scene = try EscapeScene(in: folder.path, libraries: libraries)
        defer { scene.remove() }
        try scene.ask(request, .before)
        return try run(in: scene, layers: []) { _ in }.output
    }

    private func run(
        in scene: EscapeScene, layers: EscapeLayers, _ change: (inout SandboxDescription) -> Void
    ) throws -> EscapeRun {
        var variables = [
            "HOME": scene.home, "TMPDIR": scene.temporary, "BACKGROUNDASSETS_EXTENSION": "1",
            "SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin",
        ]
        let site = sandbox.site(
            container: scene.extensionContainer, executable: EscapeScene.executable, folder: EscapeScene.appex,
            groupContainers: [scene.groupContainer])
        let isClean = layers.contains(.environment)
        var box = sandbox.description(
            of: site, priority: SandboxPriority(nice: 0, disk: nil),
            limits: layers.contains(.limits) ? ExtensionLimits.all : [], environment: variables,
            without: Set(SandboxLayer.allCases.filter { !layers.contains(EscapeLayers($0)) }))
        if !isClean {
            variables["ESCAPE_LEFT_BEHIND"] = "1"
            variables["LD_LIBRARY_PATH"] = scene.outside
            variables["LD_PRELOAD"] = [repairLibrary, scene.library].compactMap(\.self).joined(separator: ":")
            box.environment = variables.map { "\($0.key)=\($0.value)" }
        }
        change(&box)
        return try EscapeRun(box, in: sandbox, lock: site.lock, leaving: isClean ? [] : leftOpen)
    }
}

extension EscapeLayers {
    init(_ layer: SandboxLayer) {
        self =
            switch layer {
            case .landlock: .landlock
            case .seccomp: .seccomp
            case .namespaces: .namespaces
            case .secondStage: .stage2
            }
    }
}
