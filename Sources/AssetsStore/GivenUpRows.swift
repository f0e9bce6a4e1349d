// Messages that were given up, as rows and back.
package import AssetsModel

extension Database {
    /// Saves what is remembered of a message, and lets the oldest of its app go.
    func save(_ message: GivenUpMessage) throws(StoreError) {
        try run(.saveGivenUp) { row throws(StoreError) in
            try row.bind(message.id, at: 1)
            try row.bind(message.app, at: 2)
            try row.bind(message.identifier, at: 3)
            try row.bind(message.time.wholeMicroseconds, at: 4)
            try row.bind(message.file?.path, at: 5)
            try row.bind(message.file.map { Int64(bitPattern: $0.inode) }, at: 6)
            try row.bind(message.detail, at: 7)
        }
        try run(.trimGivenUp) { row throws(StoreError) in
            try row.bind(message.app, at: 1)
            try row.bind(Int64(PolicyNumbers.givenUpMessagesMax), at: 2)
        }
    }
}

extension Store {
    /// Messages of an app that were given up, oldest first.
    package func givenUpMessages(app: String) throws(StoreError) -> [GivenUpMessage] {
        try opened().rows(.givenUpOfApp) { row throws(StoreError) in
            try row.bind(app, at: 1)
        } read: { row throws(StoreError) in
            row.givenUpMessage()
        }
    }
}

extension Statement {
    fileprivate borrowing func givenUpMessage() -> GivenUpMessage {
        var file: GivenUpMessage.KeptFile?
        if let path = optionalText(at: 4), let inode = optionalInt64(at: 5) {
            file = .init(path: path, inode: UInt64(bitPattern: inode))
        }
        return GivenUpMessage(
            id: text(at: 0), app: text(at: 1), identifier: text(at: 2), time: .microseconds(int64(at: 3)), file: file,
            detail: text(at: 6))
    }
}
