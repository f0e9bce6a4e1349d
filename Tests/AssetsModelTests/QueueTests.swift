import AssetsModel
import Testing

private func record(_ sequence: Int64, priority: Int = 0) -> DownloadRecord {
    DownloadRecord(
        sequence: sequence, app: "org.example.app",
        request: DownloadRequest(
            identifier: "file \(sequence)", uniqueIdentifier: "id \(sequence)", url: "https://example.com/\(sequence)",
            group: "group.example", priority: priority), transferClass: .background)
}

@Suite("The window on the queue")
struct QueueWindowTests {
    @Test("Higher priority goes first, then earlier scheduling, whatever the order of insertion")
    func order() {
        var window = QueueWindow()
        window.load([], isComplete: true)
        for entry in [record(3), record(1), record(4, priority: 5), record(2, priority: -1)] { window.insert(entry) }
        #expect(window.entries.map(\.sequence) == [4, 1, 3, 2])
    }

    @Test("What does not fit is left to the store, and the window says so")
    func overflow() {
        var window = QueueWindow()
        window.load((1...Int64(PolicyNumbers.queueWindowMax)).map { record($0) }, isComplete: true)
        #expect(window.isComplete)
        window.insert(record(1000))
        #expect(window.entries.count == PolicyNumbers.queueWindowMax)
        #expect(!window.isComplete)
        #expect(window.entries.last?.sequence == Int64(PolicyNumbers.queueWindowMax))
        window.insert(record(1001, priority: 9))
        #expect(window.entries.first?.sequence == 1001)
        #expect(window.entries.count == PolicyNumbers.queueWindowMax)
    }

    @Test("An incomplete window takes nothing behind its last entry: the store may hold better ones")
    func incomplete() {
        var window = QueueWindow()
        window.load([record(1)], isComplete: false)
        window.insert(record(9))
        #expect(window.entries.map(\.sequence) == [1])
        window.insert(record(10, priority: 1))
        #expect(window.entries.map(\.sequence) == [10, 1])
    }

    @Test("An entry is there once")
    func once() {
        var window = QueueWindow()
        window.load([record(1)], isComplete: true)
        window.insert(record(1))
        #expect(window.entries.count == 1)
        window.remove(id: "id 1")
        #expect(window.entries.isEmpty)
        #expect(window.isComplete)
        window.invalidate()
        #expect(!window.isComplete)
    }
}

@Suite("The choice of what may run")
struct TransferSlotsTests {
    private static func entry(_ transferClass: TransferClass, app: String = "a", host: String = "h")
        -> TransferSlots.Entry
    {
        TransferSlots.Entry(app: app, host: host, transferClass: transferClass)
    }

    /// How many like this one can be started.
    private static func room(_ entry: (Int) -> TransferSlots.Entry) -> Int {
        var slots = TransferSlots()
        var count = 0
        while slots.obstacle(for: entry(count)) == nil {
            slots.begin("\(count)", entry(count))
            count += 1
        }
        return count
    }

    @Test("Limits of class, of app and host, and of host")
    func limits() {
        #expect(Self.room { Self.entry(.background, app: "\($0)", host: "\($0)") } == 3)
        #expect(Self.room { Self.entry(.foreground, app: "\($0)", host: "\($0)") } == 12)
        #expect(Self.room { _ in Self.entry(.foreground) } == 6)
        #expect(Self.room { Self.entry(.foreground, app: "\($0)") } == 12)
        #expect(Self.room { Self.entry($0 % 2 == 0 ? .essential : .foreground, app: "\($0)", host: "\($0)") } == 12)
    }

    @Test("Background transfers do not keep foreground ones from starting")
    func classesApart() {
        var slots = TransferSlots()
        for number in 0..<3 { slots.begin("\(number)", Self.entry(.background, host: "\(number)")) }
        #expect(slots.obstacle(for: Self.entry(.background, host: "x")) == .concurrency)
        #expect(!slots.hasRoom(for: .background))
        #expect(slots.obstacle(for: Self.entry(.foreground, host: "x")) == nil)
        #expect(slots.hasRoom(for: .foreground) && slots.hasRoom(for: .essential))
        slots.change("0", to: .foreground)
        #expect(slots.obstacle(for: Self.entry(.background, host: "x")) == nil)
        #expect(slots.hasRoom(for: .background))
        slots.begin("3", Self.entry(.background, host: "x"))
        slots.end("1")
        #expect(slots.obstacle(for: Self.entry(.background, host: "y")) == nil)
    }
}

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
