// Which statements of the behaviour list a test shows.
import Testing

/// Names rows of docs/behaviours.md. scripts/behaviours reads it from the sources, so all is written out there.
struct Shows: TestTrait, SuiteTrait {
    let rows: [String]
    let call: String
    var comments: [Comment] { [Comment(rawValue: "shows \(rows.joined(separator: " ")) by \(call)")] }
    let isRecursive = true
}

extension Trait where Self == Shows {
    /// `by`: the public call, as `Type.call(label:)`, or the command, as `backgroundassets verb`, that the test goes
    /// through to get the effect.
    static func shows(_ rows: String..., by call: String) -> Shows { Shows(rows: rows, call: call) }
}
