// What many measurements come down to.

/// Measured values in ascending order; at least one.
package struct Sample: Sendable {
    private let sorted: [Double]

    package init(_ values: [Double]) {
        precondition(!values.isEmpty, "a sample needs a value")
        sorted = values.sorted()
    }

    package var count: Int { sorted.count }

    /// The middle value, or the mean of the two in the middle.
    package var median: Double {
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// The smallest value that `percent` of all values do not exceed.
    package func percentile(_ percent: Double) -> Double {
        precondition((0...100).contains(percent), "a percentile lies between 0 and 100")
        let rank = (percent / 100 * Double(sorted.count)).rounded(.up)
        return sorted[max(0, min(sorted.count - 1, Int(rank) - 1))]
    }

    package var smallest: Double { sorted[0] }
    package var largest: Double { sorted[sorted.count - 1] }
}

extension Duration {
    package var seconds: Double { self / .seconds(1) }
    package var milliseconds: Double { self / .milliseconds(1) }
    package var microseconds: Double { self / .microseconds(1) }
}
