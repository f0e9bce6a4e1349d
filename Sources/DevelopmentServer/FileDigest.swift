// SHA-256 of a file, as header fields carry it.
internal import AssetsOS
internal import COpenSSL
internal import Glibc

enum FileDigest {
    private static let pieceMax = 256 << 10
    private static let length = 32

    /// The digest of all of a file, in Base64, when each byte is combined with the mask.
    static func base64(of file: borrowing Descriptor, mask: UInt8) throws(SystemCallError) -> String {
        guard let context = EVP_MD_CTX_new() else { throw SystemCallError(call: "EVP_MD_CTX_new", number: ENOMEM) }
        defer { EVP_MD_CTX_free(context) }
        EVP_DigestInit_ex(context, EVP_sha256(), nil)
        var piece = [UInt8](repeating: 0, count: pieceMax)
        var offset: off_t = 0
        let fd = file.rawValue
        while true {
            let at = offset
            let count = try check("pread") { pread(fd, &piece, pieceMax, at) }
            if count == 0 { break }
            if mask != 0 { for index in 0..<count { piece[index] ^= mask } }
            EVP_DigestUpdate(context, piece, count)
            offset += off_t(count)
        }
        var digest = [UInt8](repeating: 0, count: length)
        EVP_DigestFinal_ex(context, &digest, nil)
        // Four characters for three bytes, and the NUL that OpenSSL adds.
        var text = [UInt8](repeating: 0, count: (length + 2) / 3 * 4 + 1)
        EVP_EncodeBlock(&text, digest, Int32(length))
        return String(decoding: text.dropLast(), as: UTF8.self)
    }
}
