import AssetsModel
import Testing

@testable import AssetsStore

@Suite("Messages that were given up, in the store")
struct GivenUpRowsTests {
    private func message(_ number: Int, of app: String = "a", hasFile: Bool = true) -> GivenUpMessage {
        GivenUpMessage(
            id: "\(app)\(number)", app: app, identifier: "level", time: .microseconds(number),
            file: hasFile ? .init(path: "p/\(number)", inode: .max) : nil, detail: "why")
    }

    @Test("They are kept as they were, oldest first, with an app and for as long as it is installed")
    func roundTrip() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([.saveGivenUp(message(1))])
            #expect(try await store.givenUpMessages(app: "a") == [])
            _ = try await store.apply([
                .saveApp(makeApp("a")), .saveApp(makeApp("b")), .saveGivenUp(message(1)),
                .saveGivenUp(message(2, hasFile: false)),
                .saveGivenUp(message(3, of: "b")),
            ])
            #expect(try await store.givenUpMessages(app: "a") == [message(1), message(2, hasFile: false)])
            _ = try await store.apply([.removeGivenUp(id: "a1"), .removeGivenUp(id: "a1")])
            #expect(try await store.givenUpMessages(app: "a") == [message(2, hasFile: false)])
            _ = try await store.apply([.removeApp("a")])
            #expect(try await store.givenUpMessages(app: "a") == [])
            #expect(try await store.givenUpMessages(app: "b") == [message(3, of: "b")])
            try await store.close()
        }
    }

    @Test("Of each app the last are remembered, and no more")
    func trimming() async throws {
        try await inPlace { place in
            let store = try await place.open()
            _ = try await store.apply([
                .saveApp(makeApp("a")), .saveApp(makeApp("b")), .saveGivenUp(message(0, of: "b")),
            ])
            let count = PolicyNumbers.givenUpMessagesMax + 7
            _ = try await store.apply((1...count).map { .saveGivenUp(message($0)) })
            #expect(try await store.givenUpMessages(app: "a") == (8...count).map { message($0) })
            #expect(try await store.givenUpMessages(app: "b").count == 1)
            try await store.close()
        }
    }
}
