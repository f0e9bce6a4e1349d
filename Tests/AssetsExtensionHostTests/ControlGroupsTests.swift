// Which groups the service takes and what it writes to them. Files of an ordinary file system take the place of the kernel's:
// they take what is written, and do nothing about it.
import AssetsModel
import Glibc
import Testing

@testable import AssetsExtensionHost

@Suite("Control groups")
struct ControlGroupsTests {
    private static let path = "/user.slice/backgroundassetsd.service"

    /// Calls `body` with a mount whose group has these controllers.
    private func withMount(_ controllers: String?, _ body: (_ mount: String, _ group: String) throws -> Void) throws {
        var template = Array("/tmp/groups-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        let mount = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let group = mount + Self.path
        for folder in [mount + "/user.slice", group, group + "/service", group + "/extension-77"] {
            mkdir(folder, 0o700)
        }
        if let controllers { put(controllers, group + "/cgroup.controllers") }
        for file in [
            "cgroup.subtree_control", "service/cgroup.procs", "extension-77/memory.max",
            "extension-77/memory.oom.group",
            "extension-77/cgroup.procs", "extension-77/cpu.weight",
        ] { put("", group + "/" + file) }
        try body(mount, group)
        #expect(system("chmod -R u+w '\(mount)'; rm -rf '\(mount)'") == 0)
    }

    private func put(_ text: String, _ path: String) {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        #expect(write(file, bytes, bytes.count) == bytes.count)
        close(file)
    }

    private func take(_ mount: String, _ membership: String = "0::\(Self.path)\n") throws -> ControlGroups {
        try ControlGroups(membership: membership, mount: mount, process: 42)
    }

    @Test("A delegated group is divided: the service has one part, each extension another with its limit")
    func delegated() throws {
        try withMount("cpu memory pids\n") { mount, group in
            let groups = try take(mount, "4:memory:/elsewhere\n0::\(Self.path)\n")
            #expect(ControlGroups.text(group + "/service/cgroup.procs") == "42")
            // Both were written; this file keeps the one over the other.
            #expect(ControlGroups.text(group + "/cgroup.subtree_control") == "+cpuory")
            #expect(groups.weightObstacle == nil)
            #expect(ControlGroups.summary(.success(groups)).hasSuffix("weigh 33 of the processor, others 100"))
            try groups.place(77, .background)
            #expect(ControlGroups.text(group + "/extension-77/cpu.weight") == "33")
            #expect(
                ControlGroups.text(group + "/extension-77/memory.max") == "\(PolicyNumbers.extensionGroupMemoryMax)")
            #expect(ControlGroups.text(group + "/extension-77/memory.oom.group") == "1")
            #expect(ControlGroups.text(group + "/extension-77/cgroup.procs") == "77")
        }
    }

    @Test("Where somebody waits an extension weighs as much as others; without the cpu controller nothing is weighed")
    func weights() throws {
        try withMount("cpu memory pids\n") { mount, group in
            try take(mount).place(77, .foreground)
            #expect(ControlGroups.text(group + "/extension-77/cpu.weight") == "100")
        }
        try withMount("memory pids\n") { mount, group in
            let groups = try take(mount)
            #expect(groups.weightObstacle == "the cpu controller is not delegated")
            #expect(
                ControlGroups.summary(.success(groups)).hasSuffix("niceness only: the cpu controller is not delegated"))
            #expect(ControlGroups.text(group + "/cgroup.subtree_control") == "+memory")
            try groups.place(77, .background)
            #expect(ControlGroups.text(group + "/extension-77/cpu.weight") == "")
            #expect(ControlGroups.text(group + "/extension-77/cgroup.procs") == "77")
        }
    }

    @Test("The kernel's own groups take what is written to them", .needsDelegatedGroup)
    func kernel() throws {
        let own = try #require(DelegatedGroup.find())
        let path = "\(own.path)/test-\(getpid())"
        let folder = own.mount + path
        try #require(mkdir(folder, 0o700) == 0)
        var children: [Child] = []
        defer {
            for child in children { child.end() }
            for name in ["service", "extension-\(children.last?.process ?? 0)", ""] { rmdir(folder + "/" + name) }
        }
        for _ in 0..<2 { children.append(try Child()) }
        let (service, process) = (children[0].process, children[1].process)
        let groups = try ControlGroups(membership: "0::\(path)\n", mount: own.mount, process: service)
        #expect(groups.weightObstacle == nil)
        try groups.place(process, .background)
        let group = "\(folder)/extension-\(process)"
        #expect(ControlGroups.text(group + "/cpu.weight") == "33\n")
        #expect(ControlGroups.text(group + "/memory.max") == "\(PolicyNumbers.extensionGroupMemoryMax)\n")
        #expect(ControlGroups.text(group + "/cgroup.procs") == "\(process)\n")
        #expect(ControlGroups.text(folder + "/service/cgroup.procs") == "\(service)\n")
        children[1].end()
        groups.remove(process)
        #expect(access(group, F_OK) != 0)
    }

    @Test(
        "Without a group of version 2, its memory controller or the right to it nothing is touched, and it is said why")
    func obstacles() throws {
        try withMount("cpu pids\n") { mount, group in
            #expect(throws: ControlGroups.Obstacle.self) { try take(mount) }
            #expect(ControlGroups.text(group + "/service/cgroup.procs") == "")
        }
        try withMount(nil) { mount, _ in
            let error = #expect(throws: ControlGroups.Obstacle.self) { try take(mount) }
            #expect(error?.description == "the memory controller is not delegated")
            let obstacle = try #require(error)
            #expect(ControlGroups.summary(.failure(obstacle)).hasSuffix("the memory controller is not delegated"))
            let other = #expect(throws: ControlGroups.Obstacle.self) { try take(mount, "4:memory:/x\n") }
            #expect(other?.description == "the machine has no control groups of version 2")
            let root = #expect(throws: ControlGroups.Obstacle.self) { try take(mount, "0::/\n") }
            #expect(root?.description == "the service has no control group of its own")
        }
        guard geteuid() != 0 else { return }
        try withMount("memory\n") { mount, group in
            chmod(group + "/cgroup.subtree_control", 0o400)
            let error = #expect(throws: ControlGroups.Obstacle.self) { try take(mount) }
            #expect(error?.description == "the service's control group belongs to somebody else")
        }
    }
}
