// Control groups for extensions, where the system lets the service make some: the kernel then bounds what they take of memory
// in all ways, pages of files too, and divides the processor by what somebody waits for.
package import AssetsModel
package import AssetsOS
internal import Glibc

/// The service's own control group (version 2), which was delegated to it with the memory controller.
///
/// A group whose processes are divided among others has none itself: the service moves into a group of its own below, each
/// extension into another beside that. Weights of the processor count among these groups only: what all of them have beside
/// the user's other programs is the weight of the delegated group, which belongs to whoever delegated it.
package struct ControlGroups: Sendable {
    private static let fileMax = 64 << 10

    /// The delegated group.
    private let folder: String
    /// Why the processor is not divided; nil where it is.
    package let weightObstacle: String?

    /// Takes the group over. Throws a sentence that says why there is none.
    ///
    /// - Parameters:
    ///   - membership: The text of /proc/self/cgroup.
    ///   - mount: Where the groups of version 2 are.
    package init(
        membership: String = Self.text("/proc/self/cgroup") ?? "", mount: String = "/sys/fs/cgroup",
        process: Int32 = getpid()
    ) throws(Obstacle) {
        guard let line = membership.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }) else {
            throw Obstacle("the machine has no control groups of version 2")
        }
        // That of the whole machine, or of a whole container, is nobody's to divide.
        guard line != "0::/" else { throw Obstacle("the service has no control group of its own") }
        folder = mount + line.dropFirst(3)
        let controllers = Self.text(folder + "/cgroup.controllers")?.split { $0 == " " || $0 == "\n" } ?? []
        guard controllers.contains("memory") else { throw Obstacle("the memory controller is not delegated") }
        guard access(folder + "/cgroup.subtree_control", W_OK) == 0 else {
            throw Obstacle("the service's control group belongs to somebody else")
        }
        do throws(SystemCallError) {
            try Self.make(folder + "/service")
            try Self.write("\(process)", to: folder + "/service/cgroup.procs")
            try Self.write("+memory", to: folder + "/cgroup.subtree_control")
        } catch { throw Obstacle("the service's control group cannot be divided: \(error)") }
        weightObstacle = Self.weighing(folder, controllers.contains("cpu"))
    }

    /// Turns the cpu controller on; why not, where it is not to be had.
    private static func weighing(_ folder: String, _ isDelegated: Bool) -> String? {
        guard isDelegated else { return "the cpu controller is not delegated" }
        do throws(SystemCallError) {
            try write("+cpu", to: folder + "/cgroup.subtree_control")
            return nil
        } catch { return "the cpu controller cannot be turned on: \(error)" }
    }

    /// Why there are no groups.
    package struct Obstacle: Error, CustomStringConvertible {
        package let description: String
        init(_ description: String) { self.description = description }
    }

    /// What groups, or their lack, mean for extensions: for people.
    package static func summary(_ groups: Result<ControlGroups, Obstacle>) -> String {
        switch groups {
        case .success(let groups):
            let weights =
                groups.weightObstacle.map { "their processor time goes by niceness only: \($0)" }
                ?? "those that nobody waits for weigh \(ExtensionUrgency.background.processorWeight) of the processor, "
                + "others \(ExtensionUrgency.foreground.processorWeight)"
            return "the memory of extensions is bounded by the kernel too, in control groups; \(weights)"
        case .failure(let obstacle):
            return
                "the memory of extensions is bounded without control groups, and their processor time goes by niceness "
                + "only: \(obstacle)"
        }
    }

    /// Puts a process, and what it will start, into a group of its own.
    package func place(_ process: Int32, _ urgency: ExtensionUrgency) throws(SystemCallError) {
        let group = group(of: process)
        try Self.make(group)
        try Self.write("\(PolicyNumbers.extensionGroupMemoryMax)", to: group + "/memory.max")
        // All of it goes at once, not the process that asked last.
        try Self.write("1", to: group + "/memory.oom.group")
        if weightObstacle == nil { try Self.write("\(urgency.processorWeight)", to: group + "/cpu.weight") }
        try Self.write("\(process)", to: group + "/cgroup.procs")
    }

    /// Its process was reaped.
    package func remove(_ process: Int32) { rmdir(group(of: process)) }

    private func group(of process: Int32) -> String { "\(folder)/extension-\(process)" }

    private static func make(_ path: String) throws(SystemCallError) {
        guard mkdir(path, 0o700) != 0, errno != EEXIST else { return }
        throw SystemCallError(call: "mkdir", number: errno)
    }

    /// The kernel takes a value whole, in one call.
    private static func write(_ value: String, to path: String) throws(SystemCallError) {
        let file = Descriptor(owning: try check("open") { open(path, O_WRONLY | O_CLOEXEC) })
        let raw = file.rawValue
        let bytes = Array(value.utf8)
        try check("write") { Glibc.write(raw, bytes, bytes.count) }
    }

    package static func text(_ path: String) -> String? {
        let raw = open(path, O_RDONLY | O_CLOEXEC)
        guard raw >= 0 else { return nil }
        defer { close(raw) }
        var bytes = [UInt8](repeating: 0, count: fileMax)
        let count = read(raw, &bytes, bytes.count)
        return count >= 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }
}
