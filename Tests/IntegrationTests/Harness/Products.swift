// Where the executables of this build are.
import AssetsOS
import Foundation

/// The folder with the built products.
enum Products {
    /// Named by scripts/run-tests; else the folder of the test bundle.
    static let folder: String = {
        let environment = ProcessEnvironment.current
        if let named = ProcessEnvironment.value("BACKGROUNDASSETS_TEST_PRODUCTS", in: environment) { return named }
        let executable = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let candidates = ([executable] + CommandLine.arguments).map { ($0 as NSString).deletingLastPathComponent }
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0 + "/backgroundassetsd") } ?? "."
    }()

    static let service = folder + "/backgroundassetsd"
    static let tool = folder + "/backgroundassets"
    static let debugTool = folder + "/backgroundassets-debug"
    static let launcher = folder + "/extension-launcher"
    static let app = folder + "/FixtureApp"
    static let appExtension = folder + "/FixtureExtension"
    static let appExtension2022 = folder + "/FixtureExtension2022"
    static let limitExtension = folder + "/FixtureLimitExtension"
    static let emptyExtension = folder + "/FixtureEmptyExtension"

    /// A page of docs, which scripts/run-tests puts beside the products where its folder is closed to this user.
    static func document(_ name: String) -> String {
        let copy = folder + "/docs/" + name
        if Files.exists(copy) { return copy }
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        return url.path + "/docs/" + name
    }
}
