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

    /// Launcher, app and extension come from the plain build also where the tests are instrumented.
    static let plainFolder =
        ProcessEnvironment.value("BACKGROUNDASSETS_PLAIN_PRODUCTS", in: ProcessEnvironment.current) ?? folder

    static let service = folder + "/backgroundassetsd"
    static let plainService = plainFolder + "/backgroundassetsd"
    static let tool = folder + "/backgroundassets"
    static let plainTool = plainFolder + "/backgroundassets"
    static let launcher = plainFolder + "/extension-launcher"
    static let app = plainFolder + "/FixtureApp"
    static let appExtension = plainFolder + "/FixtureExtension"
    static let appExtension2022 = plainFolder + "/FixtureExtension2022"
    static let emptyExtension = plainFolder + "/FixtureEmptyExtension"
}
