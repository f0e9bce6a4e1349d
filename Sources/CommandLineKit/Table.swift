// Lists as aligned columns.

/// Rows under a heading. The last column takes what is left of the line.
package struct Table: Sendable {
    package enum Side: Sendable { case left, right }
    package struct Column: Sendable {
        package var title: String
        package var side: Side
        package init(_ title: String, _ side: Side = .left) {
            self.title = title
            self.side = side
        }
    }

    private let columns: [Column]
    private var rows: [[String]] = []

    /// Between two columns.
    private static let gap = "  "

    package init(_ columns: [Column]) { self.columns = columns }

    /// Adds a row; cells may hold anything, control characters are made visible.
    package mutating func add(_ cells: [String]) {
        precondition(cells.count == columns.count, "a row has one cell for each column")
        rows.append(cells.map { TerminalText.printable($0) })
    }

    package var isEmpty: Bool { rows.isEmpty }

    /// The lines of the table; with a `width`, the last column is shortened to fit, else nothing is.
    package func lines(width: Int? = nil) -> [String] {
        let all = [columns.map(\.title)] + rows
        var widths = columns.indices.map { column in all.map { TerminalText.width($0[column]) }.max() ?? 0 }
        if let width, let last = widths.indices.last {
            let before = widths.dropLast().reduce(0, +) + Self.gap.count * last
            // A table too wide for its terminal breaks its lines rather than losing the column.
            if width - before >= columns[last].title.count { widths[last] = min(widths[last], width - before) }
        }
        return all.map { row in line(row, widths: widths) }
    }

    private func line(_ row: [String], widths: [Int]) -> String {
        let cells = row.indices.map { index in
            let text = TerminalText.shortened(row[index], to: widths[index])
            let space = String(repeating: " ", count: max(0, widths[index] - TerminalText.width(text)))
            return columns[index].side == .right ? space + text : text + space
        }
        var line = cells.joined(separator: Self.gap)
        while line.hasSuffix(" ") { line.removeLast() }
        return line
    }
}
