// The sources of Tests/SourceCompatibility, compiled: the compiler says what the comments in them say and nothing else.

internal import Foundation
internal import SourceCompiler
internal import Testing

@Suite(.tags(.slow), .serialized, .timeLimit(.minutes(10))) struct SourceCompatibilityTests {
    private let compiler: SourceCompiler

    init() throws { compiler = try SourceCompiler() }

    private func expectVerified(_ sources: [URL], _ mode: SourceCompiler.Mode) async throws {
        let compiler = compiler
        let differences = try await blocking { try compiler.verify(sources, mode: mode) }
        #expect(differences == [], "\(sources.map(\.lastPathComponent)), mode \(mode)")
    }

    @Test("Sources of apps compile as one program", arguments: SourceCompiler.Mode.allCases)
    func program(mode: SourceCompiler.Mode) async throws {
        let sources = try compiler.corpus("App")
        #expect(sources.count > 12)
        try await expectVerified(sources + compiler.corpus("."), mode)
    }

    @Test("Each source compiles with what it imports itself")
    func imports() async throws {
        // In one module a file can use what another one imports: so only those with the same imports share one.
        var groups: [String: [URL]] = [:]
        for source in try compiler.corpus("App") {
            let lines = try String(contentsOf: source, encoding: .utf8).split(separator: "\n")
            let modules = lines.compactMap { line in
                line.split(separator: " ").drop { $0.hasPrefix("@") }.starts(with: ["import"])
                    ? line.split(separator: " ").last.map(String.init) : nil
            }
            groups[modules.sorted().joined(separator: " "), default: []].append(source)
        }
        #expect(groups["Foundation"] != nil && groups["BackgroundAssets"] != nil && groups.count > 4)
        for (_, sources) in groups.sorted(by: { $0.key < $1.key }) { try await expectVerified(sources, .six) }
    }

    @Test("Sources of extensions compile", arguments: [SourceCompiler.Mode.five, .six])
    func extensions(mode: SourceCompiler.Mode) async throws {
        let sources = try compiler.corpus("Extensions")
        #expect(!sources.isEmpty)
        for source in sources { try await expectVerified([source], mode) }
    }

    @Test("What Apple's module would refuse is refused", arguments: [SourceCompiler.Mode.five, .six])
    func refused(mode: SourceCompiler.Mode) async throws {
        let sources = try compiler.corpus("Refused")
        for source in sources {
            let text = try String(contentsOf: source, encoding: .utf8)
            #expect(text.contains("expected-error") || text.contains("expected-six-error"))
            try await expectVerified([source], mode)
        }
        #expect(!sources.isEmpty)
    }
}
