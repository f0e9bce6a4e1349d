// Timers of one loop, earliest first.

/// A binary heap of timers; equal deadlines fire in the order they were made.
struct TimerHeap {
    struct Timer {
        let deadline: Duration
        let token: TimerToken
        let body: @Sendable () -> Void

        fileprivate func precedes(_ other: Timer) -> Bool {
            deadline != other.deadline ? deadline < other.deadline : token.number < other.token.number
        }
    }

    private var heap: [Timer] = []
    /// Those that were not cancelled. The first timer of the heap is always one of them.
    private var live: Set<TimerToken> = []

    var isEmpty: Bool { heap.isEmpty }
    var nextDeadline: Duration? { heap.first?.deadline }

    /// Returns true when the new timer is the earliest.
    mutating func insert(_ timer: Timer) -> Bool {
        live.insert(timer.token)
        heap.append(timer)
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].precedes(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
        return heap[0].token == timer.token
    }

    mutating func cancel(_ token: TimerToken) {
        if live.remove(token) != nil { dropCancelledHead() }
    }

    /// Removes and returns what is due, in order.
    mutating func takeDue(at now: Duration) -> [Timer] {
        var due: [Timer] = []
        while let first = heap.first, first.deadline <= now {
            let timer = removeFirst()
            if live.remove(timer.token) != nil { due.append(timer) }
        }
        dropCancelledHead()
        return due
    }

    private mutating func dropCancelledHead() {
        while let first = heap.first, !live.contains(first.token) { _ = removeFirst() }
    }

    private mutating func removeFirst() -> Timer {
        heap.swapAt(0, heap.count - 1)
        let timer = heap.removeLast()
        var parent = 0
        while true {
            let left = 2 * parent + 1
            guard left < heap.count else { break }
            let right = left + 1
            let child = right < heap.count && heap[right].precedes(heap[left]) ? right : left
            guard heap[child].precedes(heap[parent]) else { break }
            heap.swapAt(child, parent)
            parent = child
        }
        return timer
    }
}
