// What handlers do with files, step by step, each of which the sandbox must allow.
import FixturePlan
import Foundation
import Glibc

/// Takes a file through the temporary folder to its place, and notes under which number each step found it.
func handle(_ file: URL, as identifier: String, in container: URL) -> FixtureRecord {
    var record = FixtureRecord("handled")
    var texts: [String: String] = [:]
    let files = FileManager.default
    func number(_ url: URL) -> String {
        (try? files.attributesOfItem(atPath: url.path)[.systemFileNumber]).map { "\($0)" } ?? "none"
    }
    do {
        texts["vended"] = number(file)
        let work = files.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try files.moveItem(at: file, to: work)
        texts["temporary"] = number(work)
        try moveAsset(work, as: identifier, in: container)
        let place = container.appendingPathComponent(FixtureName.assets).appendingPathComponent(identifier)
        texts["placed"] = number(place)
        let again = URL(fileURLWithPath: NSHomeDirectory()).appendingPathComponent("again")
        try files.moveItem(at: place, to: again)
        texts["home"] = number(again)
        _ = try files.replaceItemAt(place, withItemAt: again)
        texts["replaced"] = number(place)
        try files.setAttributes(
            [.posixPermissions: 0o640, .modificationDate: Date(timeIntervalSince1970: 1_000_000)],
            ofItemAtPath: place.path)
        let attributes = try files.attributesOfItem(atPath: place.path)
        texts["mode"] = "\(attributes[.posixPermissions] ?? "")"
        texts["time"] = "\((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0)"
        texts["attribute"] = attribute(of: place.path)
        let copy = container.appendingPathComponent("copy")
        try files.copyItem(at: place, to: copy)
        texts["copy"] = "\(files.contents(atPath: copy.path)?.count ?? 0)"
    } catch { record.note(error) }
    texts["passwd"] = files.contents(atPath: "/etc/passwd") == nil ? "closed" : "open"
    texts["network"] = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) == -1 ? "closed" : "open"
    let outside = container.deletingLastPathComponent().appendingPathComponent("outside")
    texts["outside"] = files.createFile(atPath: outside.path, contents: nil) ? "open" : "closed"
    let program = Bundle.main.executablePath ?? ""
    var process: pid_t = 0
    let arguments: [UnsafeMutablePointer<CChar>?] = [strdup(program), nil]
    defer { free(arguments[0]) }
    texts["program"] = posix_spawn(&process, program, nil, nil, arguments, environ) == 0 ? "open" : "closed"
    record.texts = texts
    return record
}

/// Writes and reads an extended attribute by path, with functions of the C library that Glibc's module does not show.
private func attribute(of path: String) -> String {
    typealias Set = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32
    typealias Get = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer, Int) -> Int
    guard let set = dlsym(nil, "setxattr"), let get = dlsym(nil, "getxattr") else { return "not found" }
    guard unsafeBitCast(set, to: Set.self)(path, "user.test", "value", 5, 0) == 0 else { return "not set: \(errno)" }
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = unsafeBitCast(get, to: Get.self)(path, "user.test", &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}
