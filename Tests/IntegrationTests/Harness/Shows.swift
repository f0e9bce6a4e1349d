// Which statements of the behaviour list a test shows.
import Testing

/// Names rows of docs/behaviours.md.
struct Shows: TestTrait, SuiteTrait {
    let rows: [String]
    var comments: [Comment] { [Comment(rawValue: "shows " + rows.joined(separator: " "))] }
    let isRecursive = true
}

extension Trait where Self == Shows {
    static func shows(_ rows: String...) -> Shows { Shows(rows: rows) }
}
