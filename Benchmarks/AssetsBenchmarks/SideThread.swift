// Threads that watch while another one measures.
internal import AssetsOS
internal import Glibc

enum SideThread {
    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body` beside the caller, who finds another way to learn of its end.
    static func start(_ body: @escaping @Sendable () -> Void) throws {
        var thread = pthread_t()
        let work = Unmanaged.passRetained(Work(body))
        let code = pthread_create(
            &thread, nil,
            { raw in
                if let raw { Unmanaged<Work>.fromOpaque(raw).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        guard code == 0 else {
            work.release()
            throw SystemCallError(call: "pthread_create", number: code)
        }
        pthread_detach(thread)
    }
}
