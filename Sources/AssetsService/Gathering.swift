// Work of many callers as one job: while one job is under way, the next gathers.
internal import AssetsOS

/// Hands what callers bring to `work`, as much at a time as has come.
///
/// Unchecked: it is used on the service's executor only, which its functions ask for.
final class Gathering<Item: Sendable, Outcome: Sendable>: @unchecked Sendable {
    private final class Ticket {
        let item: Item
        var outcome: Outcome?
        var waiter: CheckedContinuation<Void, Never>?
        init(_ item: Item) { self.item = item }
    }

    private let most: Int
    private let work: @Sendable (isolated AssetsService, [Item]) async -> [Outcome]
    private var tickets: [Ticket] = []
    private var isWorking = false
    private var timer: TimerToken?

    /// - Parameters:
    ///   - most: Items in one job.
    ///   - work: Answers one outcome for each item, in their order.
    init(most: Int, _ work: @escaping @Sendable (isolated AssetsService, [Item]) async -> [Outcome]) {
        self.most = most
        self.work = work
    }

    /// - Parameter delay: How long it may wait for others, where nothing else is to be done.
    func outcome(of item: Item, in service: isolated AssetsService, waiting delay: Duration = .zero) async -> Outcome {
        let ticket = Ticket(item)
        tickets.append(ticket)
        if delay == .zero || tickets.count >= most {
            begin(in: service)
        } else if timer == nil, !isWorking {
            timer = service.seams.loop.schedule(after: delay) { service.assumeIsolated { self.begin(in: $0) } }
        }
        await withCheckedContinuation { continuation in
            // Asked in here, because this body may run as a job of its own, after others.
            if ticket.outcome == nil { ticket.waiter = continuation } else { continuation.resume() }
        }
        guard let outcome = ticket.outcome else { preconditionFailure("work without an outcome") }
        return outcome
    }

    private func begin(in service: isolated AssetsService) {
        if let timer { service.seams.loop.cancel(timer) }
        timer = nil
        guard !isWorking, !tickets.isEmpty else { return }
        isWorking = true
        // A job of its own, behind those that are ready: what they bring comes with it.
        service.launch { service in await self.run(in: service) }
    }

    private func run(in service: isolated AssetsService) async {
        while !tickets.isEmpty {
            let taken = Array(tickets.prefix(most))
            tickets.removeFirst(taken.count)
            let outcomes = await work(service, taken.map(\.item))
            precondition(outcomes.count == taken.count, "an outcome for each item")
            for (ticket, outcome) in zip(taken, outcomes) {
                ticket.outcome = outcome
                ticket.waiter?.resume()
                ticket.waiter = nil
            }
        }
        isWorking = false
    }
}
