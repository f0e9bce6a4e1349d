// Scenarios and interruptions drawn from a seed.
import AssetsModel
import AssetsOS
import BackgroundAssetsTesting

extension Scenario {
    /// Assets, servers and an extension of all kinds.
    static func random(_ seed: UInt64) -> Scenario {
        var dice = SeededSequence(seed: seed, stream: "scenario")
        var scenario = Scenario()
        scenario.essentialAllowance = dice.next(below: 5) == 0 ? nil : 1 << 30
        scenario.assets = (0..<dice.next(below: 6)).map { index in
            .random(&dice, index, mayBeEssential: scenario.essentialAllowance != nil)
        }
        if dice.next(below: 4) == 0 { scenario.archiveLength = 1 + dice.next(below: 30_000) }
        if dice.next(below: 4) == 0 { scenario.archiveAnswers = [.cut(after: dice.next(below: 10_000)), .status(503)] }
        if dice.next(below: 4) == 0 { scenario.manifestAnswers = [.random(&dice)] }
        if dice.next(below: 8) == 0 {
            scenario.contentAnswers = [dice.coin() ? .died : dice.coin() ? .hangs : .notImplemented]
        }
        return scenario
    }
}

extension Scenario.Asset {
    fileprivate static func random(_ dice: inout SeededSequence, _ index: Int, mayBeEssential: Bool) -> Self {
        let isEssential = mayBeEssential && dice.coin()
        var asset = Self(
            identifier: "a\(index)", length: 1 + dice.next(below: 40_000), isEssential: isEssential,
            priority: dice.next(below: 3))
        if dice.next(below: 3) > 0 { asset.bytesPerSecond = 5_000 + dice.next(below: 40_000) }
        asset.name(&dice)
        if dice.next(below: 4) == 0 { asset.parts = .random(&dice) }
        if dice.next(below: 4) == 0 { asset.sentDigest = .random(&dice) }
        // Only one version has the digest that a manifest declares.
        switch dice.next(below: 6) {
        case 0: asset.declaredDigest = dice.next(below: 4) == 0 ? .wrong : .right
        case 1: asset.replacements = [1 + dice.next(below: 3), 4]
        default: break
        }
        asset.answers = (0..<dice.next(below: 4)).map { _ in .random(&dice) }
        asset.messageAnswers = (0..<dice.next(below: 3)).map { _ in .random(&dice) }
        return asset
    }
}

extension Scenario.Asset {
    /// A tag, a weak one, a date, both, or nothing.
    fileprivate mutating func name(_ dice: inout SeededSequence) {
        let date = "Mon, 13 Nov 2023 22:13:20 GMT"
        switch dice.next(below: 8) {
        case 0: etag = nil
        case 1: (etag, lastModified) = (nil, date)
        case 2: etag = "W/\"1\""
        case 3: (etag, lastModified) = ("W/\"1\"", date)
        case 4: lastModified = date
        default: break
        }
    }
}

extension CaseIterable {
    fileprivate static func random(_ dice: inout SeededSequence) -> Self {
        let cases = Array(allCases)
        return cases[dice.next(below: cases.count)]
    }
}

extension ScriptedResource.Answer {
    fileprivate static func random(_ dice: inout SeededSequence) -> Self {
        switch dice.next(below: 8) {
        case 0: .status(503)
        case 1: .status(429, [HeaderField(name: "Retry-After", value: "\(dice.next(below: 20))")])
        case 2: dice.coin() ? .status(404) : .status(500)
        case 3: .failure(TransportFailure(kind: .reset, code: URLErrorCode.networkConnectionLost, text: "reset"))
        case 4: .cut(after: dice.next(below: 20_000))
        case 5: dice.coin() ? .signIn : .status(511)
        default: .content
        }
    }
}

extension ScriptedExtension.MessageAnswer {
    fileprivate static func random(_ dice: inout SeededSequence) -> Self {
        switch dice.next(below: 8) {
        case 0: .died
        case 1: .hangs
        case 2: .left
        case 3: .notImplemented
        default: .moved
        }
    }
}

extension InterruptedRun {
    /// Up to four ends of the service at steps of all kinds.
    static func interruptions(_ seed: UInt64) -> [(step: Step, end: End)] {
        var dice = SeededSequence(seed: seed, stream: "interruptions")
        return (0..<dice.next(below: 5)).map { _ in
            let end: End =
                switch dice.next(below: 3) {
                case 0: .powerCut(.forgetsAll)
                case 1: .powerCut(.forgetsSome(seed: dice.next()))
                default: .kill
                }
            switch dice.next(below: 4) {
            case 0: return (.note(1 + dice.next(below: 60)), .stop)
            case 1: return (.note(1 + dice.next(below: 60)), end)
            case 2: return (.file(1 + dice.next(below: 200)), end)
            default: return (.page(1 + dice.next(below: 300)), end)
            }
        }
    }
}
