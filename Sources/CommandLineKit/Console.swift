// Where a tool's words go: data on stdout, talk and progress on stderr.
internal import AssetsOS
internal import FoundationEssentials
internal import Glibc

/// A tool's two output streams. May be used from any thread.
package final class Console: Sendable {
    /// Whether data is printed as JSON.
    package let printsJSON: Bool
    private let output: Int32
    private let error: Int32
    private let outputIsTerminal: Bool
    private let errorIsTerminal: Bool
    private let progress = Guarded(ProgressLine())

    package init(printsJSON: Bool = false, output: Int32 = STDOUT_FILENO, error: Int32 = STDERR_FILENO) {
        self.printsJSON = printsJSON
        self.output = output
        self.error = error
        outputIsTerminal = isatty(output) == 1
        errorIsTerminal = isatty(error) == 1
    }

    // MARK: Data

    /// Columns of the terminal that data goes to; nil when it goes elsewhere, where nothing must be cut.
    package var dataWidth: Int? { outputIsTerminal ? Self.width(of: output) : nil }

    /// A line of data.
    package func data(_ line: String) { data(text: line + "\n") }

    /// Data as it stands.
    package func data(text: String) {
        progress.withLock { line in
            write(line.clear(), to: error)
            write(text, to: output)
        }
    }

    /// A value as one line of JSON.
    package func data(json value: some Encodable) {
        data(Self.json(value))
    }

    // MARK: Talk

    /// A line for the person at the terminal.
    package func say(_ line: String) {
        progress.withLock { bar in write(bar.clear() + line + "\n", to: error) }
    }

    /// What went wrong, in the form that was asked for.
    package func say(failure: Failure, from tool: String) {
        say(printsJSON ? Self.json(failure) : "\(tool): \(TerminalText.printable(failure.description))")
    }

    /// The state of the work that this process waits for.
    package func show(_ state: Progress) {
        progress.withLock { bar in
            let surface = errorIsTerminal ? ProgressLine.Surface.terminal(width: Self.width(of: error)) : .plain
            write(bar.show(state, at: MonotonicClock.now, on: surface), to: error)
        }
    }

    /// Takes the progress bar away.
    package func endProgress() {
        progress.withLock { bar in write(bar.clear(), to: error) }
    }

    // MARK: Means

    /// One line, keys sorted, so that the same value is always the same text.
    static func json(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Our values are strings, numbers and lists of them; only a number that is not finite cannot be written.
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        guard let data = try? encoder.encode(value) else {
            preconditionFailure("\(type(of: value)) cannot be written as JSON")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private static func width(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    private func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&ready, 1, -1)
            } else if errno != EINTR {
                // Nobody reads any more; there is nobody to tell either.
                return
            }
        }
    }
}

/// Why a tool could not do what it was asked for.
package struct Failure: Error, Encodable, Hashable, Sendable, CustomStringConvertible {
    /// A code of the error table; 0 where the tool itself is at fault or no service answers.
    package var code: Int
    package var reason: String
    package var remedy: String
    /// What the process ends with.
    package var status: Int32

    package init(code: Int = 0, _ reason: String, remedy: String = "", status: Int32 = ExitStatus.failed) {
        self.code = code
        self.reason = reason
        self.remedy = remedy
        self.status = status
    }

    package var description: String { remedy.isEmpty ? reason : "\(reason); \(remedy)" }

    private enum CodingKeys: String, CodingKey { case code, reason, remedy }
}
