// Whether a layer can be entered on this machine, found out by entering it.
internal import AssetsOS
internal import AssetsSandbox
internal import CLinux
internal import Glibc

extension ExtensionSandbox {
    /// nil where a launcher could enter that layer and nothing else; otherwise what it said.
    func obstacle(to layer: SandboxLayer) throws(SystemCallError) -> String? {
        if layer == .landlock && landlockVersion == 0 { return "this kernel has no Landlock, or it is not turned on" }
        if let obstacle = SanitizedSandbox.obstacle(to: layer) { return obstacle }
        var socket = try UnixSocket.pair()
        var output = try UnixSocket.pair()
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        let entry = socket.takeFirst()
        let near = output.takeFirst()
        let far = output.takeSecond()
        let (nullRaw, entryRaw, farRaw) = (null.rawValue, entry.rawValue, far.rawValue)
        let child: ChildProcess
        do throws(SystemCallError) {
            child = try start(
                trial(of: layer), descriptors: [nullRaw, farRaw, farRaw, entryRaw, nullRaw, nullRaw, nullRaw])
        } catch {
            // Namespaces are refused before the launcher runs. Without a launcher nothing runs at all, and says so later.
            return "\(error)"
        }
        _ = consume far
        let said = Self.text(of: near)
        let exit = child.wait()
        // The other end lives until here, or the launcher would take the service for dead.
        _ = socket.takeSecond()
        return exit.isSuccess ? nil : (said.isEmpty ? "\(exit)" : said)
    }

    /// A box of one wall, for nobody.
    private func trial(of layer: SandboxLayer) -> SandboxDescription {
        var box = description(
            of: site(container: "", executable: "", folder: "", groupContainers: []),
            priority: SandboxPriority(nice: 0, disk: nil), limits: [], environment: [:])
        box.layers = [layer]
        box.grants = system.grants
        box.folder = "/"
        box.isTrial = true
        return box
    }

    private static func text(of output: borrowing Descriptor) -> String {
        var bytes = [UInt8](repeating: 0, count: 512)
        let raw = output.rawValue
        let count = (try? check("read") { read(raw, &bytes, bytes.count) }) ?? 0
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        return text.split(separator: "\n").first.map(String.init) ?? ""
    }
}
