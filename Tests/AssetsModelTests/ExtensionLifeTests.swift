import AssetsModel
import Testing

/// An owner of the rule who does at once what it says, as a kernel without delays would.
private struct Owner {
    enum Process: Hashable { case none, awake, stopped }

    var life = ExtensionLife()
    var process = Process.none
    var timer: Duration?
    var now = Duration.zero
    /// What the rule has said, since it was last asked.
    var said: [ExtensionLife.Action] = []
    var broken: [String] = []
    /// Calls that are wanted and have neither begun nor failed; and those that run.
    var wanted = 0
    var running = 0
    var isKilled = false

    mutating func tell(_ event: ExtensionLife.Event) {
        if event == .wanted { wanted += 1 }
        if event == .answered { running = 0 }
        if event == .exited { (process, isKilled) = (.none, false) }
        if event == .launched { process = .awake }
        for action in life.handle(event, at: now) {
            said.append(action)
            take(action)
        }
        check()
    }

    private mutating func take(_ action: ExtensionLife.Action) {
        switch action {
        case .launch: if process != .none { broken.append("launched beside another") }
        case .call:
            if process != .awake { broken.append("called while \(process)") }
            if wanted != 1 { broken.append("called without being asked") }
            (wanted, running) = (0, running + 1)
            if running > 1 { broken.append("two calls") }
        case .stop:
            if process != .awake || running > 0 { broken.append("stopped while \(process), \(running) calls") }
        case .resume: if process == .stopped { process = .awake }
        case .setTimer(let time):
            timer = time
            if time < now { broken.append("a timer in the past") }
        case .tellEnd, .close: if process != .awake { broken.append("told while \(process)") }
        case .kill:
            if process == .none || isKilled { broken.append("killed what is not there") }
            isKilled = true
        case .ended: running = 0
        }
    }

    /// What holds after every event.
    private mutating func check() {
        if life.phase == .suspended, running > 0 { broken.append("suspended inside an entry point") }
        if life.phase == .suspended, timer.map({ $0 < now }) ?? true { broken.append("suspended for good") }
        if life.phase == .ending, timer == nil, !isKilled { broken.append("ending for good") }
        if life.isCounted, life.phase == .suspended || life.phase == .absent || life.phase == .launching {
            broken.append("counted while \(life.phase)")
        }
        if life.phase == .running, !life.isCounted { broken.append("runs for nothing") }
    }

    /// All that was said since the last time.
    mutating func words() -> [ExtensionLife.Action] {
        defer { said = [] }
        return said
    }

    /// An owner whose extension runs an entry point.
    static var running: Owner {
        var owner = Owner()
        owner.tell(.wanted)
        owner.tell(.launched)
        _ = owner.words()
        return owner
    }

    /// One whose extension has answered and was asked to stop.
    static var stopping: Owner {
        var owner = running
        owner.tell(.answered)
        owner.tell(.rest)
        _ = owner.words()
        return owner
    }

    static var suspended: Owner {
        var owner = stopping
        owner.process = .stopped
        owner.tell(.stopped)
        _ = owner.words()
        return owner
    }
}

@Suite("Life of an extension")
struct ExtensionLifeTests {
    private let grace = PolicyNumbers.extensionGrace
    private let moment = PolicyNumbers.terminationGrace

    @Test("It is launched, called, stopped, continued for the next call, stopped again and ended")
    func wholeLife() {
        var owner = Owner()
        #expect(owner.life.phase == .absent)
        owner.tell(.wanted)
        #expect(owner.words() == [.launch] && owner.life.phase == .launching && !owner.life.isCounted)
        owner.tell(.launched)
        #expect(owner.words() == [.call] && owner.life.phase == .running && owner.life.isCounted)
        owner.tell(.answered)
        #expect(owner.words() == [] && owner.life.phase == .idle && !owner.life.isCounted)
        owner.tell(.rest)
        #expect(owner.words() == [.stop] && !owner.life.isAwake)
        owner.process = .stopped
        owner.now = .seconds(5)
        owner.tell(.stopped)
        #expect(owner.words() == [.setTimer(at: .seconds(5) + grace)] && owner.life.phase == .suspended)
        owner.tell(.wanted)
        #expect(owner.words() == [.resume, .call] && owner.life.phase == .running)
        owner.tell(.answered)
        owner.tell(.rest)
        owner.process = .stopped
        owner.tell(.stopped)
        _ = owner.words()
        owner.now = .seconds(5) + grace
        owner.tell(.timerFired)
        #expect(owner.words() == [.resume, .tellEnd, .setTimer(at: owner.now + moment)])
        #expect(owner.life.phase == .ending)
        owner.tell(.endNoted)
        #expect(owner.words() == [.close])
        owner.tell(.exited)
        #expect(owner.words() == [.ended(.none)] && owner.life.phase == .absent && !owner.life.hasProcess)
        #expect(owner.broken == [])
    }

    @Test("Between two calls it stays awake until no other follows")
    func between() {
        var owner = Owner.running
        owner.tell(.answered)
        owner.tell(.wanted)
        #expect(owner.words() == [.call])
        // Whoever thought that nothing follows was late.
        owner.tell(.rest)
        #expect(owner.words() == [])
        #expect(owner.broken == [])
    }

    @Test("A call that comes while it is being stopped waits for that, and continues it")
    func wantedWhileStopping() {
        var stopped = Owner.stopping
        stopped.tell(.wanted)
        #expect(stopped.words() == [])
        stopped.process = .stopped
        stopped.tell(.stopped)
        #expect(stopped.words() == [.resume, .call])
        var locked = Owner.stopping
        locked.tell(.wanted)
        locked.tell(.locked)
        #expect(locked.words() == [.call])
        var gone = Owner.stopping
        gone.tell(.wanted)
        gone.tell(.exited)
        #expect(gone.words() == [.ended(.crash), .launch])
        gone.tell(.launched)
        #expect(gone.words() == [.call])
        for owner in [stopped, locked, gone] { #expect(owner.broken == []) }
    }

    @Test("With a file lock it is not stopped; it has a second to let go, and is ended after that")
    func locks() {
        var owner = Owner.stopping
        owner.now = .seconds(1)
        owner.tell(.locked)
        #expect(owner.words() == [.setTimer(at: .seconds(1) + PolicyNumbers.lockLook)])
        #expect(owner.life.phase == .idle && owner.life.isAwake && !owner.life.isCounted)
        owner.now += PolicyNumbers.lockLook
        owner.tell(.timerFired)
        #expect(owner.words() == [.stop])
        var free = owner
        free.process = .stopped
        free.tell(.stopped)
        #expect(free.life.phase == .suspended)
        owner.now = .seconds(1) + PolicyNumbers.lockGrace - .milliseconds(10)
        owner.tell(.locked)
        #expect(owner.words() == [.setTimer(at: .seconds(1) + PolicyNumbers.lockGrace)])
        owner.now = .seconds(1) + PolicyNumbers.lockGrace
        owner.tell(.timerFired)
        owner.tell(.locked)
        #expect(owner.words() == [.stop, .tellEnd, .setTimer(at: owner.now + moment)])
        owner.tell(.endNoted)
        owner.tell(.exited)
        #expect(owner.words() == [.close, .ended(.lock)])
        #expect(owner.broken == [] && free.broken == [])
    }

    @Test("A call takes it back from waiting for a lock")
    func wantedWhileLocked() {
        var owner = Owner.stopping
        owner.tell(.locked)
        _ = owner.words()
        owner.tell(.wanted)
        #expect(owner.words() == [.call])
        // The timer of the lock says nothing any more.
        owner.tell(.timerFired)
        #expect(owner.words() == [])
    }

    @Test("While it has or waits for exclusive control it stays awake, and that time counts")
    func busy() {
        var owner = Owner.running
        owner.tell(.busy(true))
        owner.tell(.answered)
        #expect(owner.life.isCounted)
        owner.tell(.rest)
        #expect(owner.words() == [] && owner.life.phase == .idle && owner.life.isCounted && owner.life.isAwake)
        owner.tell(.busy(false))
        #expect(owner.words() == [.stop] && !owner.life.isCounted)
        // It asks right then.
        owner.tell(.busy(true))
        owner.process = .stopped
        owner.tell(.stopped)
        #expect(owner.words() == [.resume] && owner.life.isCounted && owner.life.phase == .idle)
        owner.tell(.busy(false))
        owner.process = .stopped
        owner.tell(.stopped)
        _ = owner.words()
        // What it asked for before it was stopped is read only now.
        owner.tell(.busy(true))
        #expect(owner.words() == [.resume] && owner.life.isCounted)
        owner.tell(.wanted)
        #expect(owner.words() == [.call])
        #expect(owner.broken == [])
    }

    @Test(
        "Control keeps a process awake that was to be stopped for its lock, and its end is forgotten with the process")
    func busyWithLock() {
        var owner = Owner.stopping
        owner.tell(.locked)
        owner.tell(.busy(true))
        owner.tell(.timerFired)
        #expect(owner.life.isAwake && owner.life.isCounted)
        owner.tell(.busy(false))
        owner.tell(.busy(true))
        owner.tell(.locked)
        #expect(owner.life.isCounted)
        owner.tell(.exited)
        owner.tell(.busy(true))
        #expect(!owner.life.isCounted)
        _ = owner.words()
        owner.tell(.wanted)
        owner.tell(.launched)
        owner.tell(.answered)
        owner.tell(.rest)
        #expect(owner.words() == [.launch, .call, .stop])
    }

    @Test("When its runtime is spent it is told and killed soon after; an answer in that moment counts")
    func runtimeSpent() {
        var owner = Owner.running
        owner.now = .seconds(300)
        owner.tell(.runtimeSpent)
        #expect(owner.words() == [.tellEnd, .setTimer(at: owner.now + moment)])
        #expect(owner.life.isCounted)
        var returned = owner
        returned.tell(.answered)
        #expect(!returned.life.isCounted)
        returned.tell(.endNoted)
        returned.tell(.exited)
        #expect(returned.words() == [.close, .ended(.budget)])
        owner.now += moment - .milliseconds(1)
        owner.tell(.timerFired)
        #expect(owner.words() == [.setTimer(at: .seconds(300) + moment)])
        owner.now += .milliseconds(1)
        owner.tell(.timerFired)
        owner.tell(.timerFired)
        #expect(owner.words() == [.kill])
        owner.tell(.endNoted)
        owner.tell(.exited)
        #expect(owner.words() == [.ended(.budget)])
        #expect(owner.broken == [] && returned.broken == [])
    }

    @Test(
        "What misbehaves is killed at once, wherever it is",
        arguments: [Reason.memory, .timeout, .invalid, .crash])
    func misbehaved(reason: Reason) {
        for start in [Owner.running, .stopping, .suspended] {
            var owner = start
            owner.tell(.misbehaved(reason))
            #expect(owner.words() == [.kill] && owner.life.phase == .ending)
            owner.tell(.misbehaved(.crash))
            owner.tell(.exited)
            #expect(owner.words() == [.ended(reason)])
            #expect(owner.broken == [])
        }
    }

    @Test("What is wanted while it ends runs in the next process, after the first was reaped")
    func wantedWhileEnding() {
        var owner = Owner.running
        owner.tell(.answered)
        owner.tell(.misbehaved(.memory))
        owner.tell(.wanted)
        #expect(owner.words() == [.kill])
        owner.tell(.exited)
        #expect(owner.words() == [.ended(.memory), .launch])
        owner.tell(.launched)
        #expect(owner.words() == [.call])
        #expect(owner.broken == [])
    }

    @Test("A process that ends by itself ends what it was doing, and no more", arguments: [true, false])
    func exits(inside: Bool) {
        var owner = inside ? Owner.running : .suspended
        owner.tell(.exited)
        #expect(owner.words() == [.ended(.crash)] && owner.life.phase == .absent)
        // Its answer was on its way.
        if inside { owner.tell(.answered) }
        owner.tell(.wanted)
        #expect(owner.words() == [.launch])
        #expect(owner.broken == [])
    }

    @Test("What cannot be launched is over, and can be tried again")
    func launchFails() {
        var owner = Owner()
        owner.tell(.wanted)
        owner.tell(.launchFailed)
        #expect(owner.words() == [.launch, .ended(.crash)] && owner.life.phase == .absent)
        owner.wanted = 0
        owner.tell(.wanted)
        #expect(owner.words() == [.launch])
    }

    @Test("Whoever is not wanted any more ends, also while it is launched")
    func unwanted() {
        var absent = Owner()
        absent.tell(.unwanted)
        #expect(absent.words() == [])
        var launching = Owner()
        launching.tell(.wanted)
        launching.tell(.unwanted)
        launching.tell(.launched)
        launching.tell(.exited)
        #expect(launching.words() == [.launch, .kill, .ended(.none)])
        var suspended = Owner.suspended
        suspended.tell(.unwanted)
        #expect(suspended.words() == [.resume, .tellEnd, .setTimer(at: moment)])
        // And no other is launched for what was wanted.
        suspended.tell(.wanted)
        suspended.tell(.unwanted)
        suspended.tell(.exited)
        #expect(suspended.words() == [.ended(.none)])
    }

    @Test("News that come too late change nothing")
    func late() {
        for event in [ExtensionLife.Event.stopped, .locked, .timerFired, .endNoted, .rest, .busy(false)] {
            for start in [Owner(), .running] {
                var owner = start
                let before = owner.life
                owner.tell(event)
                #expect(owner.words() == [] && owner.life == before, "\(event)")
            }
        }
    }

    @Test("Random histories keep every promise, and every phase is seen", arguments: UInt64(1)...40)
    func histories(seed: UInt64) {
        var random = SplitMix(seed: seed)
        var owner = Owner()
        var seen: Set<ExtensionLife.Phase> = []
        var isStopping = false
        for step in 0..<2000 {
            owner.said = []
            owner.now += .milliseconds(Int.random(in: 0...400, using: &random))
            if let timer = owner.timer, timer <= owner.now {
                owner.timer = nil
                owner.tell(.timerFired)
            } else if let event = next(owner, isStopping, &random) {
                if event == .stopped { owner.process = .stopped }
                if event == .stopped || event == .locked { isStopping = false }
                owner.tell(event)
            }
            if owner.said.contains(.stop) { isStopping = true }
            if owner.said.contains(.resume) { isStopping = false }
            if owner.process == .none { isStopping = false }
            if owner.life.phase == .absent { (owner.wanted, owner.timer) = (0, nil) }
            seen.insert(owner.life.phase)
            guard owner.broken.isEmpty else {
                Issue.record("seed \(seed), step \(step): \(owner.broken), \(owner.life), \(owner.said)")
                return
            }
        }
        #expect(seen.count == ExtensionLife.Phase.allCases.count, "\(seen)")
    }

    /// What may happen next.
    private func next(
        _ owner: Owner, _ isStopping: Bool, _ random: inout SplitMix
    ) -> ExtensionLife.Event? {
        var events: [ExtensionLife.Event] = [.unwanted]
        if owner.wanted == 0, owner.running == 0 { events += [.wanted, .wanted, .rest, .rest] }
        if owner.life.phase == .launching { events += [.launched, .launched, .launched, .launchFailed] }
        if owner.process != .none {
            events += [.busy(Bool.random(using: &random)), .exited, .misbehaved(.memory), .runtimeSpent]
        }
        if owner.running > 0, owner.process == .awake { events += Array(repeating: .answered, count: 12) }
        if isStopping { events += [.stopped, .stopped, .stopped, .stopped, .locked, .locked] }
        if owner.life.phase == .ending, owner.process == .awake { events.append(.endNoted) }
        return events.randomElement(using: &random)
    }
}
