// We and our peers in turn, so that whatever else the machine does meets all of them alike.

/// One who is measured, and how: the body returns what it took, in a unit of its own choice.
package struct Contender {
    package var name: String
    package var measure: () throws -> Double

    package init(_ name: String, measure: @escaping () throws -> Double) {
        self.name = name
        self.measure = measure
    }
}

package enum Contest {
    /// Below this many rounds a median means nothing.
    package static let roundsMin = 5

    /// Who comes when in a round: there and back again (A B C, C B A), so that no one always follows the same other.
    package static func order(of count: Int, inRound round: Int) -> [Int] {
        round.isMultiple(of: 2) ? Array(0..<count) : Array((0..<count).reversed())
    }

    /// Measures everybody `rounds` times after a round that does not count, and returns the values of each.
    ///
    /// Ends early when `deadline` says that time is up, with an error where that is before `roundsMin`.
    package static func run(
        _ contenders: [Contender], rounds: Int, deadline: Deadline
    ) throws -> [Sample] {
        precondition(rounds >= roundsMin, "fewer rounds than a median needs")
        for contender in contenders { _ = try contender.measure() }
        var values = Array(repeating: [Double](), count: contenders.count)
        for round in 0..<rounds {
            if deadline.hasPassed {
                guard round >= roundsMin else {
                    throw BenchError("only \(round) rounds of at least \(roundsMin) fitted into the time of a bench")
                }
                break
            }
            for index in order(of: contenders.count, inRound: round) {
                values[index].append(try contenders[index].measure())
            }
        }
        return values.map(Sample.init)
    }
}
