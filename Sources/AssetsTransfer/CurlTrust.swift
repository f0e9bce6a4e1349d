// Whose certificates are believed.
internal import CCurl
internal import Glibc

/// The authorities of the machine, and those of one more file where an engine is given one. That file may come and go:
/// it counts for the connections that are made while it is there.
///
/// A folder of hashed certificates is preferred to a bundle: a connection then reads the one file it needs.
struct CurlTrust {
    private let folder: String?
    private let extra: String?

    init(folder: String = "/etc/ssl/certs", extraAuthorities extra: String?) {
        self.extra = extra
        self.folder = Self.holdsHashes(folder) ? folder : nil
    }

    func apply(to setup: inout CurlSetup, withExtra: Bool) {
        setup.set(CURLOPT_SSL_VERIFYPEER, 1)
        setup.set(CURLOPT_SSL_VERIFYHOST, 2)
        let extra = withExtra ? extra.flatMap { access($0, R_OK) == 0 ? $0 : nil } : nil
        switch (folder, extra) {
        case (let folder?, let extra?):
            setup.set(CURLOPT_CAPATH, folder)
            setup.set(CURLOPT_CAINFO, extra)
        case (let folder?, nil):
            setup.set(CURLOPT_CAPATH, folder)
            setup.set(CURLOPT_CAINFO, nil)
        case (nil, let extra?):
            // libcurl takes one bundle: the machine's and the extra authorities go as one text.
            setAuthorities(Self.read(Self.standardBundle) + [UInt8(ascii: "\n")] + Self.read(extra), &setup)
        case (nil, nil):
            // libcurl's own bundle, which it reads once for all connections.
            break
        }
    }

    private func setAuthorities(_ text: [UInt8], _ setup: inout CurlSetup) {
        text.withUnsafeBytes { bytes in
            var blob = curl_blob(
                data: UnsafeMutableRawPointer(mutating: bytes.baseAddress), len: bytes.count,
                flags: UInt32(CURL_BLOB_COPY))
            withUnsafeMutableBytes(of: &blob) { setup.set(CURLOPT_CAINFO_BLOB, $0.baseAddress) }
        }
    }

    /// Names such as 0f5dc4f3.0, which `openssl rehash` makes.
    private static func holdsHashes(_ folder: String) -> Bool {
        guard let stream = opendir(folder) else { return false }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            let isHash = name.prefix(8).allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            if name.count == 10, isHash, name[8] == UInt8(ascii: ".") { return true }
        }
        return false
    }

    private static var standardBundle: String? {
        guard let easy = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(easy) }
        var path: UnsafePointer<CChar>?
        shim_curl_getinfo_string(easy, CURLINFO_CAINFO, &path)
        return path.map { String(cString: $0) }
    }

    private static func read(_ path: String?) -> [UInt8] {
        guard let path, let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = fread(&piece, 1, 64 << 10, file)
            if count == 0 { return bytes }
            bytes += piece[..<count]
        }
    }
}
