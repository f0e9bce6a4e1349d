import AssetsModel
import AssetsOS
import Glibc
import Testing

@testable import AssetsExtensionHost

/// A sanitizer's own tables are memory of the process.
private let isPlain: Bool = {
    #if SANITIZED
        print("\n*** NOT RUN under a sanitizer: ProcessMemoryTests: its tables are memory of the process ***\n")
        return false
    #else
        return true
    #endif
}()

@Suite("Memory of a process")
struct ProcessMemoryTests {
    private func parse(_ text: String) -> MemoryUse? { Array(text.utf8).withUnsafeBytes { ProcessMemory.parse($0) } }

    @Test("The three numbers are found by their names, wherever they stand")
    func parsing() {
        let text = """
            Name:\tRssAnon: 9
            VmRSS:\t    4000 kB
            RssAnon:\t    1024 kB
            RssFile:\t    8000 kB
            RssShmem:\t       8 kB
            VmSwap:\t      16 kB
            Threads:\t1

            """
        #expect(parse(text) == MemoryUse(anonymous: 1 << 20, shared: 8 << 10, swapped: 16 << 10))
        // The name of a program is its own choice, but not the beginning of a line.
        #expect(parse("Name:\tx\nRssAnon:\t5 kB") == MemoryUse(anonymous: 5 << 10))
        // A zombie has no memory, and so no such lines.
        #expect(parse("Name:\tx\nState:\tZ (zombie)\n") == nil)
        #expect(parse("") == nil)
        #expect(parse("RssAnon:\t99999999999999999999999999 kB\n").map { $0.counted > 0 } == true)
    }

    @Test("Pages of a process's own count, mapped files do not", .enabled(if: isPlain))
    func ownProcess() throws {
        let memory = try ProcessMemory(of: getpid())
        let before = try use(of: memory).anonymous
        let count = 64 << 20
        let own = try #require(mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        memset(own, 1, count)
        let after = try use(of: memory).anonymous
        #expect(after - before > 60 << 20)
        munmap(own, count)

        var template = Array("/tmp/mapped-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        defer { close(file) }
        unlink(template)
        let bytes = [UInt8](repeating: 7, count: 1 << 20)
        for _ in 0..<64 { #expect(write(file, bytes, bytes.count) == bytes.count) }
        let start = try use(of: memory)
        let mapped = try #require(mmap(nil, count, PROT_READ, MAP_PRIVATE, file, 0))
        let sum = UnsafeRawBufferPointer(start: mapped, count: count).reduce(0) { $0 &+ Int($1) }
        #expect(sum == 7 * count)
        let end = try use(of: memory)
        #expect(end.counted - start.counted < 16 << 20)
        munmap(mapped, count)
    }

    @Test("A process that was reaped has no memory, also when another gets its number")
    func gone() throws {
        let child = try ChildProcess(ProgramStart(path: "/bin/sh", arguments: ["-c", "exit 0"]))
        let memory = try ProcessMemory(of: child.process)
        let exit = child.wait()
        #expect(exit.isSuccess)
        let use = memory.read()
        #expect(use == nil)
    }

    private func use(of memory: borrowing ProcessMemory) throws -> MemoryUse {
        let use = memory.read()
        return try #require(use)
    }
}
