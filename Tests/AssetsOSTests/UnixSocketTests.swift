import Glibc
import Testing

@testable import AssetsOS

@Suite(.timeLimit(.minutes(10))) struct UnixSocketTests {
    @Test("A listening socket is 0600 in a folder that is 0700")
    func modes() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/a/b/service.socket"
            let listener = try UnixSocket.listen(at: path)
            #expect(mode(of: path) == 0o600)
            #expect(mode(of: folder + "/a/b") == 0o700)
            let client = try UnixSocket.connect(to: path)
            try UnixSocket.setNonblocking(listener)
            let found1 = try isThere(UnixSocket.accept(listener))
            #expect(found1)
            #expect(client.rawValue >= 0)
        }
    }

    @Test("A folder that others may enter is closed to them")
    func closesFolder() async throws {
        try await withTemporaryFolder { folder in
            mkdir(folder + "/open", 0o755)
            _ = try UnixSocket.listen(at: folder + "/open/service.socket")
            #expect(mode(of: folder + "/open") == 0o700)
        }
    }

    @Test("A shared folder with sticky bit is refused")
    func refusesSharedFolder() async throws {
        try await withTemporaryFolder { folder in
            mkdir(folder + "/shared", 0o700)
            chmod(folder + "/shared", 0o1777)
            let error = #expect(throws: SystemCallError.self) {
                _ = try UnixSocket.listen(at: folder + "/shared/service.socket")
            }
            #expect(error?.number == EPERM)
        }
    }

    @Test("Paths beyond the length of a socket address work", arguments: [90, 107, 108, 109, 250])
    func longPath(length: Int) async throws {
        try await withTemporaryFolder { folder in
            let missing = max(1, length - folder.utf8.count - "/service.socket".utf8.count - 1)
            let path = folder + "/" + String(repeating: "x", count: missing) + "/service.socket"
            let listener = try UnixSocket.listen(at: path)
            try UnixSocket.setNonblocking(listener)
            _ = try UnixSocket.connect(to: path)
            let found2 = try isThere(UnixSocket.accept(listener))
            #expect(found2)
            #expect(mode(of: path) == 0o600)
        }
    }

    @Test("The socket of an earlier service is replaced, any other file is not")
    func staleSocket() async throws {
        try await withTemporaryFolder { folder in
            let path = folder + "/s"
            _ = try UnixSocket.listen(at: path)
            #expect(throws: SystemCallError(call: "connect", number: ECONNREFUSED)) {
                _ = try UnixSocket.connect(to: path)
            }
            let again = try UnixSocket.listen(at: path)
            _ = try UnixSocket.connect(to: path)
            #expect(again.rawValue >= 0)

            let file = folder + "/file"
            close(open(file, O_CREAT | O_WRONLY, 0o600))
            #expect(throws: SystemCallError(call: "bind", number: EADDRINUSE)) {
                _ = try UnixSocket.listen(at: file)
            }
        }
    }

    @Test("Where no socket is, connecting says so")
    func nobody() async throws {
        try await withTemporaryFolder { folder in
            #expect(throws: SystemCallError(call: "connect", number: ENOENT)) {
                _ = try UnixSocket.connect(to: folder + "/nobody")
            }
        }
    }

    @Test(
        "Names that no address can hold are errors", arguments: ["", "a\0b", "@" + String(repeating: "x", count: 120)])
    func badNames(name: String) {
        #expect(throws: SystemCallError.self) { _ = try UnixSocket.connect(to: name) }
    }

    @Test("Nobody waits, nothing is accepted")
    func acceptsNothing() async throws {
        try await withTemporaryFolder { folder in
            let listener = try UnixSocket.listen(at: folder + "/s")
            try UnixSocket.setNonblocking(listener)
            let found3 = try isThere(UnixSocket.accept(listener))
            #expect(!found3)
        }
    }

    @Test("The peer is known by process, user and pidfd")
    func peer() async throws {
        try await withTemporaryFolder { folder in
            let listener = try UnixSocket.listen(at: folder + "/s")
            let client = try UnixSocket.connect(to: folder + "/s")
            let credentials = try UnixSocket.peerCredentials(client)
            #expect(credentials == PeerCredentials(process: getpid(), user: geteuid(), group: getegid()))
            #expect(listener.rawValue >= 0)
            if let handle = try UnixSocket.peerProcess(client) {
                // A pidfd shows its process in fdinfo.
                let information = try contents("/proc/self/fdinfo/\(handle.rawValue)")
                #expect(information.contains("Pid:\t\(getpid())\n"))
            }
        }
    }

    @Test("Descriptors travel with bytes and are the same files")
    func descriptors() async throws {
        var pair = try UnixSocket.pair(.sequencedPackets)
        let near = pair.takeFirst()
        let far = pair.takeSecond()
        var payload = try UnixSocket.pair()
        let kept = payload.takeFirst()
        let sent = payload.takeSecond()
        let count = try [UInt8]("hello".utf8).withUnsafeBytes { bytes in
            try UnixSocket.send(bytes, descriptors: [sent.rawValue, sent.rawValue], over: near)
        }
        #expect(count == 5)
        let message = try UnixSocket.receive(100, from: far)
        #expect(message.bytes == Array("hello".utf8))
        #expect(message.descriptors.count == 2)
        for descriptor in message.descriptors {
            #expect(fcntl(descriptor.rawValue, F_GETFD) == FD_CLOEXEC)
            #expect(write(descriptor.rawValue, "x", 1) == 1)
            var byte: UInt8 = 0
            #expect(read(kept.rawValue, &byte, 1) == 1)
            #expect(byte == UInt8(ascii: "x"))
        }
    }

    @Test("More descriptors than one message holds are refused")
    func tooManyDescriptors() throws {
        var pair = try UnixSocket.pair()
        let near = pair.takeFirst()
        let far = pair.takeSecond()
        #expect(throws: SystemCallError(call: "sendmsg", number: EINVAL)) {
            try [UInt8]("x".utf8).withUnsafeBytes { bytes in
                _ = try UnixSocket.send(
                    bytes, descriptors: Array(repeating: far.rawValue, count: UnixSocket.descriptorsMax + 1), over: near
                )
            }
        }
    }

    @Test("A listener on the loop hands on each client")
    func listener() async throws {
        try await withTemporaryFolder { folder in
            try await withLoop { loop in
                let inbox = Inbox<SharedDescriptor>()
                let path = folder + "/s"
                let listener = try await loop.perform {
                    try SocketListener(try UnixSocket.listen(at: path), on: loop) { inbox.put(SharedDescriptor($0)) }
                }
                var clients: [SharedDescriptor] = []
                for _ in 0..<40 { clients.append(SharedDescriptor(try UnixSocket.connect(to: path))) }
                for _ in clients {
                    let accepted = try await inbox.next()
                    #expect(fcntl(accepted.rawValue, F_GETFL) & O_NONBLOCK != 0)
                }
                try await loop.perform { listener.close() }
                #expect(throws: SystemCallError(call: "connect", number: ECONNREFUSED)) {
                    _ = try UnixSocket.connect(to: path)
                }
            }
        }
    }
}

/// The whole of a small file.
func contents(_ path: String) throws -> String {
    let file = Descriptor(owning: try check("open") { open(path, O_RDONLY | O_CLOEXEC) })
    return String(decoding: try readAll(file.rawValue), as: UTF8.self)
}

/// Reads until the end.
func readAll(_ descriptor: Int32) throws -> [UInt8] {
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = try check("read") { read(descriptor, &piece, piece.count) }
        if count == 0 { return all }
        all += piece.prefix(count)
    }
}
