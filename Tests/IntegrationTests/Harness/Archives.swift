// Archives that nobody should have made.
import AssetsOS
import Foundation

enum Archives {
    /// An entry beside those of the bundle.
    struct Entry {
        var name: String
        /// A type of tar: "0" file, "1" hard link, "2" link, "3" device, "6" named pipe.
        var type = "0"
        var target = ""
    }

    /// Packs a bundle as tar file and adds entries whose names are taken as they are.
    static func tar(_ app: String, to archive: String, adding entries: [Entry]) async throws {
        let script = """
            import sys, tarfile, io
            archive, app, name = sys.argv[1:4]
            with tarfile.open(archive, "w") as tar:
                tar.add(app, arcname=name)
                for line in sys.stdin.read().splitlines():
                    entry = tarfile.TarInfo()
                    entry.name, kind, entry.linkname = line.split("|")
                    entry.type = kind.encode()
                    entry.mode = 0o644
                    content = b"evil" if kind == "0" else b""
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
            """
        let program = try Program(
            "/usr/bin/env", ["python3", "-c", script, archive, app, (app as NSString).lastPathComponent],
            environment: ProcessEnvironment.current)
        for entry in entries { program.write("\(entry.name)|\(entry.type)|\(entry.target)") }
        program.closeInput()
        let result = try await program.result()
        guard result.exit.isSuccess else { throw HarnessError("python3: \(result.errors)") }
    }
}
