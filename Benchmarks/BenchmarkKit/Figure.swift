// One measured number, with the target it is held against.
internal import FoundationEssentials

/// What a figure should be.
package enum Target: Hashable, Sendable {
    case atMost(Double)
    case atLeast(Double)

    package var limit: Double {
        switch self {
        case .atMost(let limit), .atLeast(let limit): limit
        }
    }

    package func isMet(by value: Double) -> Bool {
        switch self {
        case .atMost(let limit): value <= limit
        case .atLeast(let limit): value >= limit
        }
    }
}

/// A result of a bench.
package struct Figure: Hashable, Sendable {
    package var bench: String
    package var name: String
    package var value: Double
    package var unit: String
    /// What the value was measured against; nil when it stands for itself.
    package var peer: String?
    package var target: Target?

    package init(
        bench: String, name: String, value: Double, unit: String, peer: String? = nil, target: Target? = nil
    ) {
        self.bench = bench
        self.name = name
        self.value = value
        self.unit = unit
        self.peer = peer
        self.target = target
    }

    /// nil without a target. Judged before rounding, so that a figure just beyond its target is not ok.
    package var isOK: Bool? { target.map { $0.isMet(by: value) } }

    /// The figure as one JSON object on one line; throws when the value is no number.
    package func jsonLine() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(Line(self)), as: UTF8.self)
    }

    /// The value with the digits that mean something.
    package var shownValue: Double { (value * 1000).rounded() / 1000 }

    private struct Line: Encodable {
        let figure: Figure
        init(_ figure: Figure) { self.figure = figure }

        enum CodingKeys: String, CodingKey {
            case bench, figure, value, unit, peer, target, ok
        }

        // Written out, so that a missing target is null instead of being left out.
        func encode(to encoder: any Encoder) throws {
            var line = encoder.container(keyedBy: CodingKeys.self)
            try line.encode(figure.bench, forKey: .bench)
            try line.encode(figure.name, forKey: .figure)
            try line.encode(figure.shownValue, forKey: .value)
            try line.encode(figure.unit, forKey: .unit)
            try line.encode(figure.peer, forKey: .peer)
            try line.encode(figure.target?.limit, forKey: .target)
            try line.encode(figure.isOK, forKey: .ok)
        }
    }
}
