// The control group of version 2 in which the tests run, where it is theirs to divide.
import Glibc
import Testing

@testable import AssetsExtensionHost

/// A group below which the tests may make others, with the controllers that the service divides.
struct DelegatedGroup {
    /// Where the groups of version 2 are.
    var mount: String
    /// The group, below the mount.
    var path: String

    /// nil where there is none; `whyMissing` says why.
    static func find() -> DelegatedGroup? { try? look().get() }

    static var whyMissing: String? {
        if case .failure(let reason) = look() { reason.text } else { nil }
    }

    private struct Missing: Error { var text: String }

    private static func look() -> Result<DelegatedGroup, Missing> {
        let mounts = ControlGroups.text("/proc/self/mounts") ?? ""
        let line = mounts.split(separator: "\n").map { $0.split(separator: " ") }.first {
            $0.count > 2 && $0[2] == "cgroup2"
        }
        guard let line else { return .failure(Missing(text: "no control groups of version 2 are mounted")) }
        let groups = (ControlGroups.text("/proc/self/cgroup") ?? "").split(separator: "\n")
        guard let own = groups.first(where: { $0.hasPrefix("0::/") })?.dropFirst(3) else {
            return .failure(Missing(text: "the tests are in no control group of version 2"))
        }
        // Beside the tests' own processes nothing can be divided: in the group above.
        let parent = own.split(separator: "/").dropLast().map { "/" + $0 }.joined()
        let group = DelegatedGroup(mount: String(line[1]), path: parent)
        let folder = group.mount + parent
        let given = (ControlGroups.text(folder + "/cgroup.subtree_control") ?? "").split { $0 == " " || $0 == "\n" }
        for controller in ["cpu", "memory"] where !given.contains(Substring(controller)) {
            return .failure(Missing(text: "the \(controller) controller is not given to the groups below \(folder)"))
        }
        guard access(folder, W_OK) == 0, access(folder + "/cgroup.procs", W_OK) == 0 else {
            return .failure(Missing(text: "\(folder) belongs to somebody else"))
        }
        return .success(group)
    }
}

extension Trait where Self == ConditionTrait {
    /// A test with the kernel's own groups. Where there are none for it, it is left out, which is said loudly.
    static var needsDelegatedGroup: Self {
        .enabled("a delegated control group") {
            guard let reason = DelegatedGroup.whyMissing else { return true }
            let line = Array("\n*** NOT RUN, for want of a delegated control group: \(reason) ***\n\n".utf8)
            write(STDERR_FILENO, line, line.count)
            return false
        }
    }
}

/// A process that does nothing until it is ended.
final class Child {
    let process: Int32
    private var isEnded = false

    init() throws {
        var number: pid_t = 0
        var words = ["/bin/sleep", "1000"].map { (word: String) in strdup(word) } + [nil]
        let result = posix_spawn(&number, "/bin/sleep", nil, nil, &words, environ)
        for word in words { free(word) }
        try #require(result == 0)
        process = number
    }

    func end() {
        guard !isEnded else { return }
        isEnded = true
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }
}
