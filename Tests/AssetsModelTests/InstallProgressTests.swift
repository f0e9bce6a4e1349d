// One bar for an installation.
import AssetsModel
import Testing

@Suite("The progress of an installation")
struct InstallProgressTests {
    @Test("Archive, unpacking and essentials make one bar that never goes back and ends at 1")
    func oneBar() {
        var progress = InstallProgress()
        var seen: [Double] = [progress.fraction()]
        progress.archive(received: 50, expected: 100)
        seen.append(progress.fraction())
        progress.archive(received: 100, expected: 100)
        seen.append(progress.fraction())
        progress.unpacked(allowance: 1000)
        seen.append(progress.fraction())
        progress.asked(essentialBytes: 300)
        seen.append(progress.fraction())
        for received: Int64 in [100, 50, 300] {
            progress.essential(received: received)
            seen.append(progress.fraction())
        }
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 <= $1 })
        #expect((seen.last ?? 1) < 1)
        progress.finished()
        #expect(progress.fraction() == 1)
    }

    @Test(
        "However large archive and essentials are, the bar moves on with every part of both",
        arguments: [(100, 1_000_000), (100_000, 10_000), (500, 500)])
    func neverStalls(archive: Int64, essentials: Int64) {
        var progress = InstallProgress()
        var seen: [Double] = [progress.fraction()]
        for tenth: Int64 in 1...10 {
            progress.archive(received: archive * tenth / 10, expected: archive)
            seen.append(progress.fraction())
        }
        progress.unpacked(allowance: essentials * 2)
        seen.append(progress.fraction())
        progress.asked(essentialBytes: essentials)
        seen.append(progress.fraction())
        for tenth: Int64 in 1...9 {
            progress.essential(received: essentials * tenth / 10)
            seen.append(progress.fraction())
        }
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test("The allowance sets the first share, the real sizes replace it")
    func allowance() {
        var progress = InstallProgress()
        progress.unpacked(allowance: 1000)
        #expect(progress.expected == 1000)
        progress.asked(essentialBytes: 200)
        #expect(progress.expected == 200)
        progress.essential(received: 500)
        #expect(progress.received == 200)
    }
}
