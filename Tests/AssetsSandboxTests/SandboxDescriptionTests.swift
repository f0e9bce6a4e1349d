// The description of a box: what is sent is what arrives, and what appears in an empty root.
import AssetsSandbox
import Testing

@Suite struct SandboxDescriptionTests {
    private static let example = SandboxDescription(
        service: 4711, layers: [.landlock, .namespaces], landlock: LandlockAbilities(version: 7),
        filter: [1, 2, 3, 255],
        grants: [
            SandboxGrant("/usr/lib/x86_64-linux-gnu", .read),
            SandboxGrant("/usr/lib/x86_64-linux-gnu/ld.so", .run, isFolder: false),
            SandboxGrant("/d/Containers", .mount), SandboxGrant("/d/Containers/Group/g", .write),
            SandboxGrant("/d/Containers2", .write), SandboxGrant("/proc/self", .process),
        ], links: [SandboxLink("/lib", to: "usr/lib"), SandboxLink("/usr/lib/x86_64-linux-gnu/a", to: "b")],
        priority: SandboxPriority(nice: 5, disk: 7), limits: [SandboxLimit(resource: 4, value: .max)],
        folder: "/d/höme", program: "/d/p", arguments: ["", "two words"], environment: ["A=1"], isTrial: true)

    @Test("A description arrives as it was sent")
    func roundTrip() {
        #expect(SandboxDescription(bytes: Self.example.bytes) == Self.example)
        var other = Self.example
        other.priority.disk = nil
        other.isTrial = false
        other.layers = []
        #expect(SandboxDescription(bytes: other.bytes) == other)
    }

    @Test("Bytes that are no description are refused: cut off anywhere, longer, or with counts of something else")
    func nonsense() {
        let bytes = Self.example.bytes
        for count in 0..<bytes.count { #expect(SandboxDescription(bytes: Array(bytes.prefix(count))) == nil) }
        #expect(SandboxDescription(bytes: bytes + [0]) == nil)
        // Never a trap, whatever a byte is changed to.
        for place in bytes.indices {
            for value: UInt8 in [0, 1, 127, 255] {
                var changed = bytes
                changed[place] = value
                _ = SandboxDescription(bytes: changed)
            }
        }
    }

    @Test("What lies in a mount is not mounted again, and links are made where no mount has them")
    func mounts() {
        let mounts = Self.example.mounts.map(\.path)
        #expect(mounts == ["/usr/lib/x86_64-linux-gnu", "/d/Containers", "/d/Containers2"])
        #expect(Self.example.rootLinks == [SandboxLink("/lib", to: "usr/lib")])
    }
}
