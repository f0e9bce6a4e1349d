// The two hashes that Digest authentication knows, of short texts.
internal import COpenSSL

/// A hash function of RFC 7616.
package enum DigestHash: Hashable, Sendable {
    /// Broken as a fingerprint of files; here it only keeps a password out of plain sight, inside TLS.
    case md5
    case sha256

    /// The hash in lower-case hexadecimal.
    package func hexadecimal(_ text: String) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        let message = Array(text.utf8)
        // Constants of the library, and buffers that are used during the call only.
        let function = unsafe self == .md5 ? EVP_md5() : EVP_sha256()
        // Where libcrypto was built or told to do without the function the hash is empty, which no server accepts.
        guard unsafe EVP_Digest(message, message.count, &bytes, &count, function, nil) == 1 else { return "" }
        return Hexadecimal.encode(Array(bytes.prefix(Int(count))))
    }
}
