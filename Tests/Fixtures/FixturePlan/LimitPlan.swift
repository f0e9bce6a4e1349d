// What the tests tell the extension that goes to its limits and beyond: the first line of its manifest.
package import Foundation

/// What it does at the content request, and in the callback of each finished download.
package struct LimitPlan: Codable, Hashable, Sendable {
    /// One thing to do before it returns.
    package struct Deed: Codable, Hashable, Sendable {
        package enum Kind: String, Codable, Sendable {
            case nothing
            /// Has so many bytes of memory, one after the other, until it returns.
            case inflate
            /// Reads the manifest with `.mappedIfSafe` and looks at each of its bytes.
            case map
            /// Reads the manifest as bytes of its own.
            case read
            /// Asks the kernel for so many bytes at once.
            case reserve
            /// Calls itself until the stack ends.
            case recurse
            /// Works for that time.
            case work
            case crash
            /// Ends with status 3.
            case exit
            case hang
            /// Says something that is no answer.
            case nonsense
            /// Answers, and then says something that nobody asked for.
            case chatter
            /// Locks a file of the container, with each kind of lock, for that time after it has returned.
            case flock, posixLock, descriptionLock
            /// Asks for exclusive control from a queue of its own, and returns.
            case control
            /// Sets a delegate, which has so much time for each message.
            case delegate
            /// Writes so many bytes to its home.
            case write
            /// Waits for the turnstile.
            case wait
        }

        package var kind: Kind
        package var bytes = 0
        package var milliseconds = 0

        package init(_ kind: Kind, bytes: Int = 0, milliseconds: Int = 0) {
            self.kind = kind
            self.bytes = bytes
            self.milliseconds = milliseconds
        }
    }

    package var request = Deed(.nothing)
    package var finished = Deed(.nothing)
    package var downloads: [FixturePlan.Item] = []

    package init(request: Deed = Deed(.nothing), finished: Deed = Deed(.nothing), downloads: [FixturePlan.Item] = []) {
        self.request = request
        self.finished = finished
        self.downloads = downloads
    }

    /// As a manifest of at least so many bytes.
    package func encoded(padding: Int = 0) throws -> Data {
        try JSONEncoder().encode(self) + Data("\n".utf8) + Data(repeating: UInt8(ascii: "."), count: padding)
    }
}
