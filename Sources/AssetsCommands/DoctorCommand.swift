// `doctor`: what this machine lacks.
internal import AssetsWire
internal import CommandLineKit

extension AssetsTool {
    /// The sandbox; fails where a layer of it is missing.
    static func doctor(_ context: Context) throws(Failure) -> Int32 {
        let layers = try context.service.call(DeviceInterface.Sandbox.self, .init()).layers
        let isWhole = layers.allSatisfy(\.active)
        if context.console.printsJSON {
            for layer in layers { context.console.data(json: layer) }
            return isWhole ? ExitStatus.done : ExitStatus.failed
        }
        var table = Table([.init("LAYER"), .init("ACTIVE"), .init("DETAIL")])
        for layer in layers { table.add([layer.name, layer.active ? "yes" : "no", layer.detail]) }
        print(table, ifEmpty: "extensions of this service are not processes", context)
        for layer in layers {
            for weakness in layer.weaker {
                context.console.data(TerminalText.printable("weaker (\(layer.name)): \(weakness)"))
            }
        }
        return isWhole ? ExitStatus.done : ExitStatus.failed
    }
}
