// A server that answers anything at any time.
import AssetsModel
import Testing

@Suite("Any order of events")
struct TransferPlanRandomTests {
    @Test(
        "Nothing that a server does makes a plan trap or take bytes at another place than it asked for",
        arguments: 0..<40)
    func random(seed: UInt64) {
        var dice = SplitMix(seed: seed)
        for _ in 0..<200 {
            var order = TransferPlan.Order(url: Bool.random(using: &dice) ? assetURL : assetURL + ".zip")
            order.resume = Self.note(&dice)
            order.sizeLimit = Bool.random(using: &dice) ? 90 : nil
            order.expectedSize = Bool.random(using: &dice) ? 100 : 0
            order.digest = Bool.random(using: &dice) ? digest(1) : nil
            let partial = TransferPlan.Partial(
                length: .random(in: 0...120, using: &dice),
                note: Self.note(&dice).map { PartialNote($0, staleOffset: .random(in: 0...60, using: &dice)) },
                storageEpoch: here)
            var plan = TransferPlan(order, partial: partial)
            run(&plan, seed, &dice)
        }
    }

    private func run(_ plan: inout TransferPlan, _ seed: UInt64, _ dice: inout SplitMix) {
        var action = plan.begin()
        var asked: Int64 = 0
        for _ in 0..<16 {
            if case .request(let hop) = action { asked = hop.from }
            if case .take(let start) = action {
                #expect(start.offset == 0 || start.offset == asked, "seed \(seed)")
            }
            if case .complete(let whole) = action, let start = plan.start, start.total > 0 {
                #expect(whole == start.total, "seed \(seed)")
            }
            if case .check = action {
                action = plan.checked(digest(.random(in: 1...2, using: &dice)))
                continue
            }
            action = next(&plan, &dice)
        }
    }

    private func next(_ plan: inout TransferPlan, _ dice: inout SplitMix) -> TransferPlan.Action {
        if plan.mustSeeBeginning {
            let beginning = Bool.random(using: &dice) ? Array("<!DOCTYPE html><html>".utf8) : [1, 2, 3]
            return plan.beginning(Bool.random(using: &dice) ? beginning : [])
        }
        switch Int.random(in: 0..<4, using: &dice) {
        case 0, 1: return plan.head(Self.heads.randomElement(using: &dice) ?? head(200))
        case 2: return plan.body(.random(in: 0...60, using: &dice))
        default: return plan.end(nil)
        }
    }

    private static func note(_ dice: inout SplitMix) -> ResumePoint? {
        let tag = [etag, etag, etag, "\"v2\"", nil].randomElement(using: &dice) ?? nil
        guard Int.random(in: 0..<6, using: &dice) > 0 else { return nil }
        var note = AssetsModelTests.note(
            etag: tag, total: [0, 100, 100, -1].randomElement(using: &dice) ?? 0,
            synced: .random(in: -1...120, using: &dice),
            epoch: Bool.random(using: &dice) ? here : "boot:2", digest: Bool.random(using: &dice) ? 1 : nil)
        note.isSecondTry = Bool.random(using: &dice)
        return note
    }

    private static let heads = [
        head(200, ["Content-Length": "100", "ETag": etag]), head(200), head(206, ["Content-Range": "bytes 60-99/100"]),
        head(200, ["Content-Length": "100", "ETag": etag, "Accept-Ranges": "bytes"]),
        head(200, ["Content-Length": "100", "Content-Type": "text/html"]),
        head(200, ["Content-Length": "100", "Repr-Digest": digestField(1)]),
        head(200, ["Content-Length": "100", "Content-Encoding": "gzip"]),
        head(206, ["Content-Range": "bytes 60-99/100", "ETag": etag]), head(302, ["Location": "/x"]),
        head(206, ["Content-Range": "bytes 40-99/100", "ETag": etag]),
        head(206, ["Content-Range": "bytes 40-59/100", "ETag": etag, "Content-Digest": digestField(2)]),
        head(302, ["Location": "/x", "Content-Length": "5"]), head(302, ["Location": "http://wifi.example/login"]),
        head(416, ["Content-Range": "bytes */100"]), head(416, ["Content-Range": "bytes */60", "ETag": etag]),
        head(503), head(511), head(404), head(999),
    ]
}
