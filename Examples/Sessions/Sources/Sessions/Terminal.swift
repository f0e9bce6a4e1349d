// Standard output and standard error, and what is at their other end.
import BackgroundAssets

enum Terminal {
    /// Whether standard output is a terminal that can be drawn on.
    static var isInteractive: Bool {
        isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM", default: "dumb"] != "dumb"
    }

    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes a line of talk to standard error.
    static func say(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

    fileprivate static func write(_ text: String, to descriptor: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { bytes = bytes.dropFirst(count) } else if errno != EINTR { return }
        }
    }

    /// Lines that are drawn over and over at the same place.
    struct Area {
        private var drawn = 0

        /// Draws the lines; of more than the terminal has, the last ones.
        mutating func draw(_ lines: [String], height: Int) {
            let shown = lines.suffix(max(1, height - 1))
            var text = drawn > 0 ? "\u{1B}[\(drawn)A" : ""
            for line in shown { text += "\r\u{1B}[2K\(line)\n" }
            // What is left of a longer list.
            text += "\u{1B}[0J"
            drawn = shown.count
            Terminal.write(text, to: STDOUT_FILENO)
        }
    }
}
