// What many tests look at.
import AssetsOS
import AssetsWire
import FixturePlan
import Foundation
import Glibc
import Testing

/// A refusal as the tool prints it: one line of JSON on standard error.
struct Refusal: Decodable {
    var code: Int
    var reason: String
    var remedy: String

    /// The one refusal of a run; a second line of complaint is a failure of the test.
    init(_ result: ProgramResult, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(result.errors.count == 1, "\(result.errors)", sourceLocation: sourceLocation)
        let line = try #require(result.errors.last, sourceLocation: sourceLocation)
        self = try JSONDecoder().decode(Refusal.self, from: Data(line.utf8))
    }
}

extension TestDevice {
    /// Nothing of any app: no folder, no file, no row.
    func expectNothingInstalled(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        #expect(try await apps() == [], sourceLocation: sourceLocation)
        #expect(try await downloads(of: "") == [], sourceLocation: sourceLocation)
        for folder in ["Applications", "Transfers"] + ContainerFolders.Kind.allCases.map(\.rawValue) {
            let found = Files.names(in: root + "/" + folder).filter { $0 != ".staging" }
            #expect(found == [], "\(folder)", sourceLocation: sourceLocation)
        }
        #expect(Files.names(in: root + "/Applications/.staging") == [], sourceLocation: sourceLocation)
    }
}

extension TestDevice {
    /// Installs the sample app with a plan, and waits until its extension has been told of so many downloads.
    func install(
        _ plan: FixturePlan, from server: TestServer, messages: Int = 0,
        _ change: (inout FixtureBundle) -> Void = { _ in }
    ) async throws {
        var bundle = FixtureBundle(manifestURL: try server.put("manifest.json", plan.encoded()))
        change(&bundle)
        let result = try await install(try bundle.write(to: folder))
        try #require(result.exit == .exited(0), "\(result.errors)")
        try await told(messages)
    }

    /// Waits until the extension that was asked for an installation is gone.
    func extensionIsAsleep() async throws {
        try await row("extension-ended")
        let process = try await process()
        for child in Processes.children(of: process) { try await Processes.gone(child) }
    }

    /// The turnstile in the app's container, where the extension waits to be let through.
    func turnstile() throws -> Turnstile {
        let turnstile = try Turnstile(container() + "/" + FixtureName.turnstile)
        openTurnstile.withLock { $0 = turnstile }
        return turnstile
    }
}

/// A pipe whose readers pass one at a time.
final class Turnstile: Sendable {
    private let descriptor: Int32

    init(_ path: String) throws {
        guard mkfifo(path, 0o600) == 0 || errno == EEXIST else { throw HarnessError("\(path): errno \(errno)") }
        // Open for both, so that it neither waits for a reader nor ends for one.
        descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw HarnessError("\(path): errno \(errno)") }
    }

    deinit { close(descriptor) }

    /// Lets one waiter pass, the next one where nobody waits.
    func letPass() {
        var byte: UInt8 = 1
        _ = write(descriptor, &byte, 1)
    }
}
