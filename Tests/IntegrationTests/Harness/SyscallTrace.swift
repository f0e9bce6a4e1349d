// What a program asked of the kernel, as strace wrote it down.
import Foundation

/// Calls in the order of their beginnings and ends.
struct SyscallTrace {
    struct Event: Hashable {
        enum Moment { case begin, end }
        var moment: Moment
        var name: String
        /// All that stands between the parentheses; of an end that came later, what stood there at its beginning.
        var arguments: String
    }

    /// strace with these calls, before the path of the program that it runs.
    static func command(_ calls: [String], to file: String) -> [String] {
        ["/usr/bin/strace", "-f", "-qq", "-y", "-s", "300", "-o", file, "-e", "trace=" + calls.joined(separator: ",")]
    }

    private(set) var events: [Event] = []

    /// Reads lines such as `12 fsync(3</a>) = 0`, `12 fsync(3</a> <unfinished ...>` and `12 <... fsync resumed>) = 0`.
    init(_ text: String) {
        var open: [Substring: Event] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard words.count == 2 else { continue }
            let (thread, rest) = (words[0], words[1].drop { $0 == " " })
            if rest.hasPrefix("<... ") {
                guard var event = open.removeValue(forKey: thread) else { continue }
                event.moment = .end
                events.append(event)
            } else if let parenthesis = rest.firstIndex(of: "(") {
                let name = String(rest[..<parenthesis])
                let isWhole = !rest.hasSuffix("<unfinished ...>")
                let event = Event(moment: .begin, name: name, arguments: String(rest[parenthesis...]))
                events.append(event)
                if isWhole {
                    events.append(Event(moment: .end, name: name, arguments: event.arguments))
                } else {
                    open[thread] = event
                }
            }
        }
    }

    /// The first place from `start` on.
    func place(
        of moment: Event.Moment, _ names: [String], from start: Int = 0, where matches: (String) -> Bool
    ) -> Int? {
        events[start...].firstIndex {
            $0.moment == moment && names.contains($0.name) && matches($0.arguments)
        }
    }
}
