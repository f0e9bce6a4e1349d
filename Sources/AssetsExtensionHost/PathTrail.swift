// A path without links, and the links that led to it.
internal import AssetsSandbox
internal import Glibc

/// What a path is called really. An empty root needs the real folder and every link on the way to it.
struct PathTrail {
    /// As in the kernel.
    private static let linksMax = 40

    private(set) var real = ""
    private(set) var links: [SandboxLink] = []
    private(set) var isFolder = false

    /// nil where nothing is.
    init?(_ path: String) {
        var rest = Self.names(path)
        while !rest.isEmpty {
            let name = rest.removeFirst()
            if name == ".." {
                real = Self.parent(of: real)
                continue
            }
            let next = "\(real)/\(name)"
            var status = stat()
            guard lstat(next, &status) == 0 else { return nil }
            guard status.st_mode & S_IFMT == S_IFLNK else {
                real = next
                isFolder = status.st_mode & S_IFMT == S_IFDIR
                continue
            }
            guard links.count < Self.linksMax, let target = Self.target(of: next) else { return nil }
            links.append(SandboxLink(next, to: target))
            if target.hasPrefix("/") { real = "" }
            rest = Self.names(target) + rest
        }
        if real.isEmpty { return nil }
    }

    private static func names(_ path: String) -> [String] {
        path.split(separator: "/").map(String.init).filter { $0 != "." }
    }

    private static func parent(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }

    private static func target(of link: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }
}
