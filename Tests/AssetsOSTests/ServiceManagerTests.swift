import Glibc
import Testing

@testable import AssetsOS

@Suite(.timeLimit(.minutes(10))) struct ServiceManagerTests {
    @Test("Sockets of the service manager are found by their names and closed when nobody wants them")
    func activation() async throws {
        try await withTemporaryFolder { folder in
            // The kernel gives out the lowest free number: other tests never come up here.
            let base = descriptorsMax - 8
            let first = try UnixSocket.listen(at: folder + "/one")
            let second = try UnixSocket.listen(at: folder + "/two")
            let plain = Descriptor(owning: open("/dev/null", O_RDONLY | O_CLOEXEC))
            #expect(dup2(first.rawValue, base) == base)
            #expect(dup2(plain.rawValue, base + 1) == base + 1)
            #expect(dup2(second.rawValue, base + 2) == base + 2)
            let environment = [
                "LISTEN_PID": "\(getpid())", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "one:log:service",
            ]
            do {
                var sockets = SocketActivation(environment: environment, firstDescriptor: base)
                #expect(sockets.names == ["one", "log", "service"])
                let found1 = isThere(sockets.takeListener(named: "log"))
                #expect(!found1)
                #expect(fcntl(base + 2, F_GETFD) == FD_CLOEXEC)
                let found2 = isThere(sockets.takeListener(named: "service"))
                #expect(found2)
                let found3 = isThere(sockets.takeListener(named: "service"))
                #expect(!found3)
                let found4 = isThere(sockets.takeListener())
                #expect(found4)
                let found5 = isThere(sockets.takeListener())
                #expect(!found5)
            }
            for descriptor in base...base + 2 { #expect(fcntl(descriptor, F_GETFD) == -1) }
        }
    }

    @Test(
        "Announcements for others and nonsense give no sockets",
        arguments: [
            [:], ["LISTEN_FDS": "1"], ["LISTEN_PID": "1", "LISTEN_FDS": "1"],
            ["LISTEN_PID": "self", "LISTEN_FDS": "-1"],
            ["LISTEN_PID": "self", "LISTEN_FDS": "many"], ["LISTEN_PID": "self", "LISTEN_FDS": "100000"],
            ["LISTEN_PID": "self", "LISTEN_FDS": "1"],
        ])
    func noActivation(environment: [String: String]) {
        let own = environment.mapValues { $0 == "self" ? "\(getpid())" : $0 }
        // No descriptor of that number can be open.
        var sockets = SocketActivation(environment: own, firstDescriptor: descriptorsMax)
        #expect(sockets.names == [])
        let found6 = isThere(sockets.takeListener())
        #expect(!found6)
    }

    @Test("What the service says arrives at its starter", arguments: [false, true])
    func notification(abstract: Bool) async throws {
        try await withTemporaryFolder { folder in
            let path = abstract ? "@test-notification-\(getpid())" : folder + "/notify"
            do {
                let listener = try NotificationListener(path: path)
                #expect(try listener.receive() == nil)
                let notification = try #require(ServiceNotification(environment: ["NOTIFY_SOCKET": path]))
                try notification.send(.status("two\nlines"), .ready)
                try notification.send(.anotherServes)
                try notification.send(.stopping)
                #expect(try listener.receive() == [.status("two lines"), .ready])
                #expect(try listener.receive() == [.anotherServes])
                #expect(try listener.receive() == [.stopping])
            }
            #expect(throws: SystemCallError.self) {
                try ServiceNotification(environment: ["NOTIFY_SOCKET": path])?.send(.ready)
            }
        }
    }

    @Test(
        "Without a listener there is nothing to notify",
        arguments: [[:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "relative"]])
    func noNotification(environment: [String: String]) {
        #expect(ServiceNotification(environment: environment) == nil)
    }

    @Test("A listener that does not read does not hold up the service")
    func fullListener() async throws {
        try await withTemporaryFolder { folder in
            let listener = try NotificationListener(path: folder + "/notify")
            let notification = try #require(ServiceNotification(environment: ["NOTIFY_SOCKET": folder + "/notify"]))
            #expect(throws: SystemCallError(call: "send", number: EAGAIN)) {
                for _ in 0..<100_000 { try notification.send(.ready) }
            }
            #expect(try listener.receive() == [.ready])
        }
    }

    @Test(
        "A device is found by name, environment or the XDG folders",
        arguments: [
            ("/dev1", [:], "/dev1", "/dev1/service.socket"),
            ("sub//./dev/", [:], "/place/sub/dev", "/place/sub/dev/service.socket"),
            ("", ["BACKGROUNDASSETS_DEVICE": "/e"], "/e", "/e/service.socket"),
            ("/", [:], "/", "/service.socket"),
            (
                nil, ["HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1"], "/home/u/.local/share/backgroundassets",
                "/run/user/1/backgroundassets/service.socket"
            ),
            (
                nil, ["HOME": "/home/u", "XDG_DATA_HOME": "/data", "BACKGROUNDASSETS_DEVICE": ""],
                "/data/backgroundassets",
                "/data/backgroundassets/service.socket"
            ),
            (
                nil, ["HOME": "/home/u", "XDG_DATA_HOME": "relative", "XDG_RUNTIME_DIR": "too"],
                "/home/u/.local/share/backgroundassets", "/home/u/.local/share/backgroundassets/service.socket"
            ),
        ] as [(String?, [String: String], String, String)])
    func device(named: String?, environment: [String: String], root: String, socket: String) {
        let location = DeviceLocation(device: named, environment: environment, currentFolder: "/place")
        #expect(location == DeviceLocation(root: root, socketPath: socket))
    }

    @Test("Without name and home there is no device")
    func noDevice() {
        #expect(DeviceLocation(environment: [:]) == nil)
        #expect(DeviceLocation(environment: ["HOME": "relative"]) == nil)
    }

    @Test("The environment of this process is read as it is")
    func environment() {
        let environment = ProcessEnvironment.current
        #expect(environment["PATH"] == getenv("PATH").map { String(cString: $0) })
        #expect(ProcessEnvironment.value("X", in: ["X": ""]) == nil)
    }
}

/// The first descriptor number that this process cannot have.
private var descriptorsMax: Int32 {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return Int32(clamping: limit.rlim_cur)
}
