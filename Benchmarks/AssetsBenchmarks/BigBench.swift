// A file larger than any memory.
internal import AssetsOS
internal import BenchmarkKit
internal import Glibc

/// 20 GB in one file: the service's memory does not grow with it. At the server it has holes and takes no space; where it
/// is received it takes all of it.
struct BigBench: Bench {
    let name = "big"
    let summary = "one file of 20 GB: time, and what the service's memory grows by"

    private static let bytes = 20_000_000_000
    /// Beside the file.
    private static let room = 1 << 30
    private static let memoryMax = 8.0

    func measure(until deadline: Deadline) throws -> [Figure] {
        let folder = try Folder.temporary()
        defer { try? Folder.remove(folder) }
        guard try Folder.freeBytes(folder) > Self.bytes + Self.room else {
            throw BenchError("*** NOT RUN: \(folder) has no room for a file of 20 GB ***")
        }
        // Before there is a service, which would end meanwhile: nobody uses it.
        let file = folder + "/big.bin"
        try Folder.writeHole(Self.bytes, to: file)
        let digest = try Digests.sha256(of: file, folder)
        let device = try PrivateDevice(folder: folder)
        defer { device.end(SIGTERM) }
        let nginx = try Nginx(folder: folder + "/https", authority: device.authority)
        defer { nginx.stop() }
        try Folder.write("", to: nginx.site + "/manifest.txt")
        try check("rename") { rename(file, nginx.site + "/big.bin") }
        try device.install(try BenchBundle(in: folder, manifestURL: nginx.baseURL + "/manifest.txt").path)
        let idle = try Machine.anonymousMemory(of: device.process())
        let watch = try MemoryWatch(device.process())
        defer { _ = watch.end() }
        let before = try Machine.processorTime(ofGroup: device.process())
        let wall = try WireReceiver(device: device)
            .fetch(nginx.baseURL + "/big.bin", bytes: Self.bytes, sha256: digest, to: folder + "/file")
        let after = try Machine.processorTime(ofGroup: device.process())
        let growth = Double(watch.end() - idle) / Double(1 << 20)
        return [
            figure("memory_growth", growth, "MiB", target: .atMost(Self.memoryMax)),
            figure("wall", wall.seconds, "s"), figure("cpu", (after - before).seconds, "s"),
        ]
    }

    private func figure(_ name: String, _ value: Double, _ unit: String, target: Target? = nil) -> Figure {
        Figure(bench: self.name, name: name, value: value, unit: unit, target: target)
    }
}
