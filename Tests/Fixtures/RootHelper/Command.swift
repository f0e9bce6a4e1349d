// Programs that the helper itself needs.
internal import AssetsOS
internal import Glibc
internal import RootHelperClient

enum Command {
    private static let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    private static let wordsMax = 4096

    static func find(_ name: String) throws -> String {
        for folder in folders where access("\(folder)/\(name)", X_OK) == 0 { return "\(folder)/\(name)" }
        throw HelperError("\(name) is not installed; scripts/bootstrap installs it")
    }

    /// Runs a program to its end; what it says is the reason when it fails.
    static func run(_ name: String, _ arguments: [String]) throws {
        let null = Descriptor(owning: try check("open") { open("/dev/null", O_RDWR | O_CLOEXEC) })
        var ends: [Int32] = [-1, -1]
        try check("pipe") { pipe(&ends) }
        let reading = Descriptor(owning: ends[0])
        let child: ChildProcess
        do {
            let writing = Descriptor(owning: ends[1])
            child = try ChildProcess(
                ProgramStart(
                    path: try find(name), arguments: arguments, environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"],
                    descriptors: [null.rawValue, writing.rawValue, writing.rawValue]))
        }
        let words = text(from: reading)
        let exit = child.wait()
        guard exit.isSuccess else {
            throw HelperError("\(name) \(arguments.joined(separator: " ")) \(exit): \(words)")
        }
    }

    private static func text(from descriptor: borrowing Descriptor) -> String {
        let raw = descriptor.rawValue
        var words: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1024)
        while let count = try? check("read", { read(raw, &piece, piece.count) }), count > 0 {
            if words.count < wordsMax { words += piece.prefix(count) }
        }
        return String(decoding: words, as: UTF8.self).split(separator: "\n").joined(separator: " | ")
    }
}
