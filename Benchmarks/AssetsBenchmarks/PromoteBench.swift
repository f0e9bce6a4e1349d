// What a promotion costs: bytes that come twice, and time without a byte.
internal import AssetsOS
internal import BenchmarkKit
internal import DevelopmentServer
internal import Glibc

/// Background downloads that an app starts in the foreground while they run, ten times each, at random moments.
struct PromoteBench: Bench {
    let name = "promote"
    let summary = "200 promotions at random moments: bytes fetched twice, pauses, kept connections; against aria2"

    func measure(until deadline: Deadline) throws -> [Figure] {
        let run = try PromoteRun(name: name)
        defer { run.finish() }
        return try run.figures(until: deadline)
    }
}

/// What promotions have cost one contender.
private struct PromotionCost {
    var promotions = 0
    /// From the last byte before to the first one after: of each, in milliseconds.
    var pauses: [Double] = []
    /// Bytes that were in the file and were asked for again, or sent again.
    var refetched: Int64 = 0
    /// Requests beside the first of each file.
    var newRequests = 0
    var wrongFiles = 0
    var files = 0

    /// Of the promotions, in percent.
    var kept: Double { promotions == 0 ? 0 : 100 * (1 - Double(newRequests) / Double(promotions)) }
}

private final class PromoteRun {
    private static let promotions = 200
    /// Where the server hangs up, and where it is far away.
    private static let otherPromotions = 100
    private static let promotionsOfEach = 10
    private static let size = 120_000_000
    /// nginx sends in pieces and waits whole milliseconds between them; where these do not come out even it is too quick at
    /// first, and then sends nothing until the second is over.
    private static let serverPiece = 256 << 10
    private static let rate = serverPiece * 1000 / 4
    /// The last byte must not come while a promotion is measured.
    private static let margin = 12_000_000
    private static let pauseMax = Duration.milliseconds(50)
    /// A hang-up comes up to so long before or after a promotion is asked for.
    private static let hangUpWindow = Duration.milliseconds(4)
    private static let farDelay = Duration.milliseconds(20)
    private static let limit = Duration.seconds(60)
    private static let look: useconds_t = 200

    private let name: String
    private let folder: String
    private let device: PrivateDevice
    private let nginx: Nginx
    private let aria2: Aria2
    private let ours: ServicePromoter
    private let promoters: [any Promoter]
    private var log: RequestLog
    private var chance: Chance
    private var number = 0

    init(name: String) throws {
        self.name = name
        folder = try Folder.temporary()
        device = try PrivateDevice(folder: folder)
        nginx = try Nginx(
            folder: folder, authority: device.authority, rate: Self.rate,
            directives: "output_buffers 1 \(Self.serverPiece);")
        try Folder.writeRandom(Self.size, to: nginx.site + "/asset.bin")
        aria2 = try Aria2(
            folder: folder + "/aria2", authority: device.authority.certificatePath, log: folder + "/programs.log")
        ours = ServicePromoter(
            device: device, resumer: try ServiceResumer(folder: folder, device: device, nginx: nginx))
        promoters = [
            ours, Aria2Promoter(aria2),
        ]
        log = RequestLog(of: nginx)
        chance = try Chance()
    }

    func finish() {
        aria2.stop()
        device.end(SIGTERM)
        nginx.stop()
        try? Folder.remove(folder)
    }

    // MARK: Figures

    func figures(until deadline: Deadline) throws -> [Figure] {
        chance.announce()
        let roundTrip = try LoopbackClient.roundTrip(to: nginx.port)
        var costs = promoters.map { _ in PromotionCost() }
        var round = 0
        while costs.contains(where: { $0.promotions < Self.promotions }) {
            try check(deadline, costs.map(\.promotions))
            for index in Contest.order(of: promoters.count, inRound: round)
            where costs[index].promotions < Self.promotions {
                try measure(promoters[index], from: nginx.baseURL, Self.promotions, &costs[index])
            }
            round += 1
        }
        guard try ours.promotions() == costs[0].promotions else {
            throw BenchError("\(costs[0].promotions) promotions, but \(try ours.promotions()) in the journal")
        }
        return zip(promoters, costs).flatMap { figures(of: $0, $1, roundTrip) }
            + [figure("round_trip", roundTrip.milliseconds, "ms")]
            + (try closedFigures(roundTrip, until: deadline)) + (try farFigures(until: deadline))
    }

    private func check(_ deadline: Deadline, _ promotions: [Int]) throws {
        guard !deadline.hasPassed else {
            throw BenchError("only \(promotions) promotions fitted into the time of a bench")
        }
    }

    private func figures(of promoter: any Promoter, _ cost: PromotionCost, _ roundTrip: Duration) -> [Figure] {
        guard promoter !== ours else { return figures("", cost, roundTrip, .atLeast(100)) }
        return figures("", cost, roundTrip, nil).map { figure in
            var figure = figure
            figure.name += "_aria2"
            figure.peer = promoter.name
            figure.target = nil
            return figure
        }
    }

    private func figures(
        _ prefix: String, _ cost: PromotionCost, _ roundTrip: Duration, _ kept: Target?
    ) -> [Figure] {
        let pauses = cost.pauses.isEmpty ? nil : Sample(cost.pauses)
        let pauseMax = (Self.pauseMax + roundTrip).milliseconds
        return [
            figure(prefix + "refetched", Double(cost.refetched), "bytes", target: .atMost(0)),
            figure(prefix + "pause_worst", pauses?.largest ?? 0, "ms", target: .atMost(pauseMax)),
            figure(prefix + "pause_p50", pauses?.median ?? 0, "ms"),
            figure(prefix + "kept", cost.kept, "%", target: kept),
            figure(prefix + "promotions", Double(cost.promotions), ""),
            figure(prefix + "wrong_files", Double(cost.wrongFiles), "of \(cost.files)", target: .atMost(0)),
        ]
    }

    private func figure(_ name: String, _ value: Double, _ unit: String, target: Target? = nil) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, target: target)
    }

    // MARK: A download

    /// Promotes a download again and again, until there are so many promotions in all. `hangUp` is where its server ends the
    /// connection meanwhile.
    private func measure(
        _ promoter: any Promoter, from baseURL: String, _ wanted: Int, _ cost: inout PromotionCost,
        hangUp relay: Relay? = nil
    ) throws {
        number += 1
        let file = WantedFile(
            name: "promote-\(number).bin", url: "\(baseURL)/asset.bin?\(number)", size: Self.size)
        Folder.settle()
        _ = try log.take()
        try promoter.begin(file)
        let watch = try LengthWatch(promoter.partial(of: file))
        defer { watch.end() }
        try wait(until: { watch.length > 0 }, "\(file.name) does not come")
        var lengths: [Int64] = []
        for _ in 0..<min(Self.promotionsOfEach, wanted - cost.promotions) {
            chance.time(upTo: pause * 2).pass()
            guard watch.length < Self.size - Self.margin else { break }
            let promotion = try relay.map { try promoteWithHangUp(promoter, file, $0) } ?? promoter.promote(file)
            guard let promotion else { break }
            cost.promotions += 1
            if let length = promotion.length { lengths.append(length) }
            try wait(until: { watch.hasGrown(since: promotion.end) }, "\(file.name) does not go on")
            guard let gap = watch.longestGap(from: promotion.start, to: promotion.end) else {
                throw BenchError("\(file.name): the pause of a promotion was not seen")
            }
            cost.pauses.append(gap.milliseconds)
            try promoter.demote(file)
        }
        try promoter.finish(file, within: Self.limit)
        cost.refetched += watch.lost
        try note(try answers(of: file), lengths, &cost)
        cost.files += 1
        let isRight = try promoter.result(of: file).map { try Folder.isEqual($0, nginx.site + "/asset.bin") }
        if isRight != true { cost.wrongFiles += 1 }
        promoter.clear(file)
    }

    /// Spreads the promotions over the time that the whole file takes.
    private var pause: Duration {
        .seconds(Double(Self.size) / Double(Self.rate) / Double(Self.promotionsOfEach + 2))
    }

    private func wait(until isSo: () throws -> Bool, _ complaint: String) throws {
        let deadline = Deadline(in: Self.limit)
        while try !isSo() {
            guard !deadline.hasPassed else { throw BenchError(complaint) }
            usleep(Self.look)
        }
    }

    /// The last one is logged a moment after its bytes have come.
    private func answers(of file: WantedFile) throws -> [LoggedAnswer] {
        var answers: [LoggedAnswer] = []
        try wait(
            until: {
                answers += try log.take()
                return answers.contains { $0.start + $0.sent >= file.size }
            }, "nginx does not log the end of \(file.name)")
        return answers
    }

    /// Counts what was asked for again: against the bytes that were there, where the download stood still at so many, else
    /// against those that were sent.
    private func note(_ answers: [LoggedAnswer], _ lengths: [Int64], _ cost: inout PromotionCost) throws {
        let requests = answers.sorted { $0.start < $1.start }.dropFirst()
        cost.newRequests += requests.count
        guard !lengths.isEmpty else {
            cost.refetched += max(0, answers.reduce(0) { $0 + $1.sent } - Int64(Self.size))
            return
        }
        guard requests.count == lengths.count else {
            throw BenchError("\(lengths.count) interruptions, but new requests from \(requests.map(\.start))")
        }
        cost.refetched += zip(requests, lengths).reduce(0) { $0 + max(0, $1.1 - $1.0.start) }
    }

    // MARK: A server that hangs up

    private func closedFigures(_ roundTrip: Duration, until deadline: Deadline) throws -> [Figure] {
        let relay = try Relay(to: nginx.port)
        defer { relay.stop() }
        var cost = PromotionCost()
        while cost.promotions < Self.otherPromotions {
            try check(deadline, [cost.promotions])
            try measure(
                ours, from: "https://localhost:\(relay.port)", Self.otherPromotions, &cost, hangUp: relay)
        }
        return figures("closed_", cost, roundTrip, nil)
    }

    private func promoteWithHangUp(_ promoter: any Promoter, _ file: WantedFile, _ relay: Relay) throws -> Promotion? {
        let time = MonotonicClock.now + chance.time(upTo: Self.hangUpWindow * 2)
        relay.hangUp(.init(time: time, resets: chance.next(below: 2) == 0))
        Self.hangUpWindow.pass()
        guard var promotion = try promoter.promote(file) else {
            relay.goOn()
            return nil
        }
        // Whoever connects again has written what came on the connection before.
        try relay.waitForNext(within: Self.limit)
        promotion.length = Int64((try? Folder.size(promoter.partial(of: file))) ?? 0)
        relay.goOn()
        promotion.start = min(promotion.start, time)
        promotion.end = MonotonicClock.now
        return promotion
    }

    // MARK: A server far away

    private func farFigures(until deadline: Deadline) throws -> [Figure] {
        let relay = try Relay(to: nginx.port, delay: Self.farDelay)
        defer { relay.stop() }
        let roundTrip = try LoopbackClient.roundTrip(to: relay.port)
        var cost = PromotionCost()
        while cost.promotions < Self.otherPromotions {
            try check(deadline, [cost.promotions])
            try measure(ours, from: "https://localhost:\(relay.port)", Self.otherPromotions, &cost)
        }
        return figures("far_", cost, roundTrip, .atLeast(100))
            + [figure("far_round_trip", roundTrip.milliseconds, "ms")]
    }
}
