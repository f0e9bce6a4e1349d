// What an extension prints.

// The C library locks its streams; the variable that names one is never set again.
@preconcurrency internal import Glibc

/// The standard output of this process.
enum StandardOutput {
    /// Sends every line as soon as it is whole, whether or not the process is stopped later.
    static func sendLineByLine() { setvbuf(stdout, nil, _IOLBF, 0) }

    /// Sends what waits.
    static func flush() { fflush(nil) }
}
