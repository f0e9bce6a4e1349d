// What many tests look at.
import AssetsWire
import Foundation
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
        for folder in ["Applications", "Containers/Group", "Containers/Extension", "Transfers"] {
            let found = Files.names(in: root + "/" + folder).filter { $0 != ".staging" }
            #expect(found == [], "\(folder)", sourceLocation: sourceLocation)
        }
        #expect(Files.names(in: root + "/Applications/.staging") == [], sourceLocation: sourceLocation)
    }
}
