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
    private static let allNames = ["landlock", "seccomp", "namespaces", "stage 2", "limits", "environment", "kernel"]

    var names: [String] { Self.allNames.enumerated().filter { rawValue & 1 << $0.offset != 0 }.map(\.element) }
    var description: String { names.isEmpty ? "nothing" : names.joined(separator: ", ") }
}

/// One try to get out.
struct EscapeProbe: Hashable, Sendable, CustomStringConvertible {
    let name: String
    /// Each of these holds it also alone, where the kernel has all of them.
    let declared: EscapeLayers
    /// Those of `declared` that hold it on this machine.
    let layers: EscapeLayers
    /// These hold it only together; empty for none.
    let together: EscapeLayers
    /// These hold it with some kernels and not with others.
    let varies: EscapeLayers
    /// The version of Landlock from which on that holds it.
    let landlockVersion: Int32
    /// Its end by a signal is a denial.
    let mayDie: Bool
    /// No other probe may run meanwhile.
    let isAlone: Bool
    /// Why an ordinary user does not get there even without a sandbox; nil where he does.
    let ordinary: String?
    /// Why this machine refuses it to every ordinary user, others do not; nil where it does not either.
    let refusal: String?
    let says: String

    var description: String { name }

    /// Reads a line of the list; nil for any other line.
    ///
    /// - Parameter landlockVersion: Of this machine; 0 where it has none.
    init?(line: String, landlockVersion machine: Int32) {
        let parts = line.split(separator: "\t", maxSplits: 9, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 10, parts[0] == "escape-probe: probe" else { return nil }
        let numbers = parts[2...6].compactMap { Int($0) }
        guard numbers.count == 5 else { return nil }
        name = parts[1]
        declared = EscapeLayers(rawValue: numbers[0])
        together = EscapeLayers(rawValue: numbers[1])
        varies = EscapeLayers(rawValue: numbers[2])
        landlockVersion = max(1, Int32(numbers[3]))
        let flags = numbers[4]
        mayDie = flags & 1 << 0 != 0
        isAlone = flags & 1 << 1 != 0
        ordinary = parts[7] == "-" ? nil : parts[7]
        refusal = parts[8] == "-" ? nil : parts[8]
        says = parts[9]
        var layers = declared
        if machine < landlockVersion { layers.remove(.landlock) }
        if machine == 0 && flags & 1 << 2 != 0 { layers.remove(.stage2) }
        if refusal != nil { layers.insert(.kernel) }
        self.layers = layers
    }

    /// Whether it is denied where only these layers are entered, besides the kernel's own rules.
    func isHeld(by entered: EscapeLayers) -> Bool {
        let all = entered.union(.kernel)
        return !layers.isDisjoint(with: all) || !together.isEmpty && together.isSubset(of: all)
    }
}

/// What came of a probe.
enum EscapeVerdict: Hashable, Sendable, CustomStringConvertible {
    /// By what, and the error that the call answered, if it was a call.
    case denied(String, error: Int32 = 0)
    case reached(String)
    /// This kernel or processor has nothing of the kind.
    case notApplicable(String)
    /// The run itself went wrong, so that it says nothing.
    case broken(String)

    var isDenied: Bool { if case .denied = self { true } else { false } }
    var isReached: Bool { if case .reached = self { true } else { false } }
    var isApplicable: Bool { if case .notApplicable = self { false } else { true } }
    var isUnknownCall: Bool { if case .denied(_, ENOSYS) = self { true } else { false } }

    var description: String {
        switch self {
        case .denied(let by, 0): "denied: \(by)"
        case .denied(let by, let error): "denied: \(by): \(String(cString: strerror(error)))"
        case .reached(let what): "reached: \(what)"
        case .notApplicable(let why): "not applicable: \(why)"
        case .broken(let why): "broken: \(why)"
        }
    }
}

extension EscapeVerdict {
    /// Judges a run by what the extension said, how it ended, and what is no longer as it was around it.
    init(of trial: EscapeSuite.Trial, output: [String], exit: String, signal: Int32?, damage: [String]) {
        let probe = trial.probe
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
        case ("denied", _): self = Self.denial(rest)
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
        // Nobody but the filter answers so to a call that the kernel has.
        if isUnknownCall && !trial.layers.contains(.seccomp) { self = .notApplicable("this kernel has no such call") }
    }

    private static let mark = "escape-probe: "

    /// Of "13 open".
    private static func denial(_ text: String) -> Self {
        let words = text.split(separator: " ", maxSplits: 1)
        guard words.count == 2, let number = Int32(words[0]) else { return .denied(text) }
        return .denied(String(words[1]), error: number)
    }
}
