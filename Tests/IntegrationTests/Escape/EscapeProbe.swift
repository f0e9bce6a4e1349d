// A probe as the fixture extension lists it, and what came of it. docs/sandbox-probes.md explains both.
import AssetsOS
import Foundation
import Glibc

/// Parts of the sandbox that hold probes; the values are those of Tests/Fixtures/EscapeProbes/include/EscapeProbe.h.
struct EscapeLayers: OptionSet, Hashable, Sendable, CustomStringConvertible {
    let rawValue: Int

    static let landlock = Self(rawValue: 1 << 0)
    static let seccomp = Self(rawValue: 1 << 1)
    static let namespaces = Self(rawValue: 1 << 2)
    static let stage2 = Self(rawValue: 1 << 3)
    static let limits = Self(rawValue: 1 << 4)
    static let environment = Self(rawValue: 1 << 5)
    /// Not ours: the kernel refuses every ordinary user.
    static let kernel = Self(rawValue: 1 << 6)

    /// Those that can be switched off.
    static let each: [Self] = [.landlock, .seccomp, .namespaces, .stage2, .limits, .environment]
    static let all: Self = each.reduce([]) { $0.union($1) }
    private static let names = ["landlock", "seccomp", "namespaces", "stage 2", "limits", "environment", "kernel"]

    var description: String {
        let names = Self.names.enumerated().filter { rawValue & 1 << $0.offset != 0 }.map(\.element)
        return names.isEmpty ? "nothing" : names.joined(separator: ", ")
    }
}

/// One try to get out.
struct EscapeProbe: Hashable, Sendable, CustomStringConvertible {
    let name: String
    /// Each of these holds it also alone.
    let layers: EscapeLayers
    /// These hold it only together; empty for none.
    let together: EscapeLayers
    /// Its end by a signal is a denial.
    let mayDie: Bool
    /// Why an ordinary user does not get there even without a sandbox; nil where he does.
    let ordinary: String?
    let says: String

    var description: String { name }

    /// Reads a line of the list; nil for any other line.
    init?(line: String) {
        let parts = line.split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 7, parts[0] == "escape-probe: probe", let layers = Int(parts[2]),
            let together = Int(parts[3]), let flags = Int(parts[4])
        else { return nil }
        name = parts[1]
        self.layers = EscapeLayers(rawValue: layers)
        self.together = EscapeLayers(rawValue: together)
        mayDie = flags & 1 != 0
        ordinary = parts[5] == "-" ? nil : parts[5]
        says = parts[6]
    }

    /// Whether it is denied where only these layers are entered, besides the kernel's own rules.
    func isHeld(by entered: EscapeLayers) -> Bool {
        let all = entered.union(.kernel)
        return !layers.isDisjoint(with: all) || !together.isEmpty && together.isSubset(of: all)
    }
}

/// What came of a probe.
enum EscapeVerdict: Hashable, Sendable, CustomStringConvertible {
    case denied(String)
    case reached(String)
    /// This kernel or processor has nothing of the kind.
    case notApplicable(String)
    /// The run itself went wrong, so that it says nothing.
    case broken(String)

    var isDenied: Bool { if case .denied = self { true } else { false } }
    var isReached: Bool { if case .reached = self { true } else { false } }
    var isApplicable: Bool { if case .notApplicable = self { false } else { true } }

    var description: String {
        switch self {
        case .denied(let by): "denied: \(by)"
        case .reached(let what): "reached: \(what)"
        case .notApplicable(let why): "not applicable: \(why)"
        case .broken(let why): "broken: \(why)"
        }
    }
}

extension EscapeVerdict {
    /// Judges a run by what the extension said, how it ended, and what is no longer as it was around it.
    init(of probe: EscapeProbe, output: [String], exit: String, signal: Int32?, damage: [String]) {
        let lines = output.compactMap { line -> Substring? in
            line.hasPrefix(Self.mark) ? line.dropFirst(Self.mark.count) : nil
        }
        let said = lines.last { !$0.hasPrefix("begin ") }
        let words = (said ?? "").split(separator: " ", maxSplits: 1)
        let rest = words.count > 1 ? String(words[1]) : ""
        let place = damage.joined(separator: "; ")
        guard lines.contains("begin \(probe.name)") else {
            self = .broken("it did not begin: \(exit), \(output.suffix(3))")
            return
        }
        guard damage.isEmpty else {
            self = .reached([rest, place].filter { !$0.isEmpty }.joined(separator: "; "))
            return
        }
        switch (words.first, signal) {
        case ("denied", _): self = .denied(Self.named(rest))
        case ("reached", _): self = .reached(rest)
        case ("tried", _): self = .denied("nothing came of what it tried: \(rest)")
        case ("not-applicable", _): self = .notApplicable(rest)
        case (nil, SIGSYS?): self = .denied("killed at the call")
        case (nil, let signal?) where probe.mayDie: self = .denied("killed by signal \(signal)")
        // The loader ran in its place, and refused.
        case (nil, nil) where exit == "\(ChildExit.exited(127))": self = .denied("\(output.suffix(1))")
        // Another program ran in its place.
        case (nil, nil): self = .reached("another program: \(exit), \(output.suffix(2))")
        default: self = .broken("\(exit), \(output.suffix(3))")
        }
    }

    private static let mark = "escape-probe: "

    /// "13 open" as "open: Permission denied".
    private static func named(_ text: String) -> String {
        let words = text.split(separator: " ", maxSplits: 1)
        guard words.count == 2, let number = Int32(words[0]) else { return text }
        return number == 0 ? String(words[1]) : "\(words[1]): \(String(cString: strerror(number)))"
    }
}
