import Testing

@testable import AssetsClient
@testable import AssetsOS
@testable import AssetsWire

private typealias Device = DeviceInterface

@Suite(.timeLimit(.minutes(10))) struct ServiceConnectionTests {
    @Test("A call has its reply, one after the other, also when the service answers later")
    func calls() async throws {
        try await withService { service in
            let connection = try await service.connect()
            for app in ["one", "later", "two"] {
                let reply = try await onThread { try connection.call(Device.Launch.self, .init(app: app)) }
                #expect(reply.executable == "/" + app)
            }
        }
    }

    @Test("A refusal has code, reason and remedy")
    func refusal() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Uninstall.self, .init(app: "a.b")) }
            }
            #expect(error?.kind == .refused(code: 1005, reason: "a.b is not installed", remedy: "install it first"))
            #expect(error?.description == "a.b is not installed; install it first")
            // The connection is as good as before.
            let reply = try await onThread { try connection.call(Device.Describe.self, Nothing()) }
            #expect(reply.device == "test")
        }
    }

    @Test("A method that the service has not is a violation that names it")
    func unknownMethod() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(ExtensionInterface.WillTerminate.self, Nothing()) }
            }
            #expect(error?.description.contains("org.backgroundassets.Extension") == true)
            guard case .violation = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test(
        "An answer that makes no sense is a violation and ends the connection",
        arguments: ["nonsense", "stream", "long", "empty"])
    func senseless(app: String) async throws {
        try await withService { service in
            let connection = try await service.connect()
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Launch.self, .init(app: app)) }
            }
            guard case .violation = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
            await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Describe.self, Nothing()) }
            }
        }
    }

    @Test("An error of nobody we know is a violation with its name")
    func strangeError() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Launch.self, .init(app: "stranger")) }
            }
            #expect(error?.description.contains("org.example.Odd") == true)
        }
    }

    @Test("A service that closes instead of answering is unreachable")
    func hangUp() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Launch.self, .init(app: "hangup")) }
            }
            guard case .unreachable = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("Closing from another thread ends a call that waits")
    func closeDuringCall() async throws {
        try await withService { service in
            let connection = try await service.connect()
            async let call: Void = {
                let error = await #expect(throws: ClientError.self) {
                    try await onThread { try connection.call(Device.Launch.self, .init(app: "silence")) }
                }
                #expect(error?.description.contains("closed") == true)
            }()
            connection.close()
            await call
            await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Describe.self, Nothing()) }
            }
        }
    }

    @Test("Calls of many threads on one connection each have their own reply")
    func manyThreads() async throws {
        try await withService { service in
            let connection = try await service.connect()
            try await withThrowingTaskGroup { group in
                for number in 0..<16 {
                    group.addTask {
                        try await onThread {
                            for round in 0..<50 {
                                let app = "\(number)-\(round)"
                                let reply = try connection.call(Device.Launch.self, .init(app: app))
                                #expect(reply.executable == "/" + app)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("A stream has all its replies, then the connection takes calls again")
    func stream() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let names = try await onThread {
                var names: [String] = []
                try connection.stream(Device.Apps.self, Nothing()) { reply in
                    names += reply.apps.map(\.bundleIdentifier)
                    return true
                }
                return names
            }
            #expect(names == ["app1", "app2", "app3"])
            let reply = try await onThread { try connection.call(Device.Describe.self, Nothing()) }
            #expect(reply.device == "test")
        }
    }

    @Test("Leaving a stream tells the service, by return value and by error", arguments: [true, false])
    func leaving(byError: Bool) async throws {
        struct Enough: Error {}
        try await withService { service in
            let connection = try await service.connect()
            let follow = { @Sendable in
                try connection.stream(Device.FollowInstall.self, .init(install: "i1")) { reply in
                    #expect(reply.update.install == "i1")
                    if byError { throw Enough() }
                    return false
                }
            }
            if byError {
                await #expect(throws: Enough.self) { try await onThread(follow) }
            } else {
                try await onThread(follow)
            }
            let left = try await service.left.next()
            #expect(left == "i1")
        }
    }

    @Test("Closing from another thread ends a stream that waits; calls on it are refused meanwhile")
    func closeDuringStream() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let started = Inbox<Bool>()
            async let follow: Void = {
                let error = await #expect(throws: ClientError.self) {
                    try await onThread {
                        try connection.stream(Device.FollowInstall.self, .init(install: "i2")) { _ in
                            started.put(true)
                            return true
                        }
                    }
                }
                guard case .unreachable = error?.kind else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            }()
            _ = try await started.next()
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Describe.self, Nothing()) }
            }
            #expect(error?.description.contains("second connection") == true)
            connection.close()
            let left = try await service.left.next()
            #expect(left == "i2")
            await follow
        }
    }

    @Test("A call that is too long for the wire is refused before it is sent")
    func tooLong() async throws {
        try await withService { service in
            let connection = try await service.connect()
            let app = String(repeating: "x", count: WireLimit.messageMax)
            let error = await #expect(throws: ClientError.self) {
                try await onThread { try connection.call(Device.Launch.self, .init(app: app)) }
            }
            guard case .violation = error?.kind else {
                Issue.record("\(String(describing: error))")
                return
            }
            _ = try await onThread { try connection.call(Device.Describe.self, Nothing()) }
        }
    }
}
