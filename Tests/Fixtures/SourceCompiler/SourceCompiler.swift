// Compiles sources as users write them against the modules of this build.
package import Foundation

/// The compiler with the options that an app's package gives it.
package struct SourceCompiler: Sendable {
    /// How a source may be compiled.
    package enum Mode: String, CaseIterable, CustomStringConvertible, Sendable {
        /// Language mode 5, with every check of concurrency as a warning.
        case five
        /// Language mode 6.
        case six
        /// Language mode 6 with the features that new projects switch on.
        case approachable

        package var description: String { rawValue }

        /// The version of the language, where nothing else is wanted.
        package static func version(_ version: String) -> [String] { ["-swift-version", version] }

        var options: [String] {
            switch self {
            case .five: Self.version("5") + ["-strict-concurrency=complete"]
            case .six: Self.version("6")
            case .approachable:
                Self.version("6") + [
                    "-default-isolation", "MainActor", "-enable-upcoming-feature", "NonisolatedNonsendingByDefault",
                    "-enable-upcoming-feature", "InferIsolatedConformances",
                ]
            }
        }
    }

    /// A program is instrumented as the library is.
    #if TSAN
        private static let sanitizer = ["-sanitize=thread"]
    #elseif SANITIZED
        private static let sanitizer = ["-sanitize=address"]
    #else
        private static let sanitizer: [String] = []
    #endif

    /// Where the libraries and modules of the build are.
    package let products: String
    private let package: String

    /// Looks for the build beside the tests.
    package init() throws {
        let executable = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folders = (CommandLine.arguments + [executable]).map { ($0 as NSString).deletingLastPathComponent }
        guard let found = folders.first(where: { Self.exists($0 + "/libBackgroundAssets.so") }) else {
            throw SourceError("libBackgroundAssets.so is not beside the tests: build the whole package first")
        }
        products = found
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { url.deleteLastPathComponent() }
        package = url.path
    }

    private static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    // MARK: Sources

    /// Where scripts/run-tests puts what the tests compile, else the package itself.
    private func place(_ copied: String, _ original: String) -> String {
        Self.exists(products + "/" + copied) ? products + "/" + copied : package + "/" + original
    }

    /// The template's folder.
    package var template: URL { URL(fileURLWithPath: place("Template", "Examples/Template"), isDirectory: true) }

    /// The sources of Tests/SourceCompatibility in one of its folders, by name.
    package func corpus(_ folder: String) throws -> [URL] {
        let place = place("SourceCompatibility", "Tests/SourceCompatibility")
        let url = URL(fileURLWithPath: place, isDirectory: true).appendingPathComponent(folder)
        return try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "swift" }.sorted { $0.path < $1.path }
    }

    // MARK: Options

    /// Lets a source import os, OSLog and their parts.
    package var logging: [String] {
        ["-Xcc", "-fmodule-map-file=" + place("COSLog.build/module.modulemap", "Sources/COSLog/module.modulemap")]
    }

    /// Lets a file that imports only Foundation see our module.
    package static let importing = ["-Xfrontend", "-import-module", "-Xfrontend", "BackgroundAssets"]

    private var modules: [String] {
        [
            "-parse-as-library", "-I", products + "/Modules", "-Xcc", "-I" + package + "/Sources/CLinux/include",
            "-Xcc", "-fmodule-map-file=" + products + "/CLinux.build/module.modulemap",
            "-Xcc", "-fmodule-map-file=" + products + "/CRepair.build/module.modulemap",
        ]
    }

    private func linking(_ linksFramework: Bool, _ program: URL) -> [String] {
        ["-L", products, "-o", program.path]
            + [products, "$ORIGIN/../../Frameworks"].flatMap { ["-Xlinker", "-rpath", "-Xlinker", $0] }
            + (linksFramework ? ["-lBackgroundAssets"] : []) + Self.sanitizer
    }

    // MARK: Compiling

    /// Compiles a program in which nothing but a deprecation is complained of; answers the other complaints.
    package func compile(
        _ sources: [URL], options: [String] = [], linksFramework: Bool = true, to program: URL
    ) throws -> [String] {
        try run(
            modules + ["-module-name", "Program", "-warnings-as-errors", "-Wwarning", "DeprecatedDeclaration"]
                + linking(linksFramework, program) + options + sources.map(\.path))
    }

    /// Compares what the compiler says of the sources with the comments in them; answers the differences. `program` is
    /// where to put the program, if one is to be made.
    package func verify(_ sources: [URL], mode: Mode, program: URL? = nil) throws -> [String] {
        // Most checks of concurrency come after those of types, so that -typecheck does not show them.
        let output = program.map { linking(true, $0) } ?? ["-emit-sil", "-o", "/dev/null"]
        let verifying = [
            "-verify", "-verify-ignore-unrelated", "-verify-additional-prefix",
            (mode == .five ? "five" : "six") + "-",
        ]
        return try run(
            modules + logging + Self.importing + mode.options + ["-wmo", "-module-name", "Program"]
                + verifying.flatMap { ["-Xfrontend", $0] } + output + sources.map(\.path))
    }

    private func run(_ arguments: [String]) throws -> [String] {
        let compiler = Process()
        let output = Pipe()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["swiftc"] + arguments
        compiler.standardError = output
        compiler.standardOutput = output
        try compiler.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        compiler.waitUntilExit()
        if compiler.terminationStatus == 0 { return [] }
        return text.split(separator: "\n").map(String.init).filter { $0.contains("error:") } + ["failed"]
    }
}

/// What is missing for compiling.
package struct SourceError: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}
