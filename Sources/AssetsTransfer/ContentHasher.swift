// libcrypto's hash of bytes that come piece by piece.
package import AssetsModel
internal import COpenSSL

/// A hash that grows.
///
/// Unchecked: used by one executor at a time, which its owner sees to.
package final class ContentHasher: @unchecked Sendable {
    private let algorithm: ContentDigest.Algorithm
    private let context: OpaquePointer

    package init(_ algorithm: ContentDigest.Algorithm) {
        self.algorithm = algorithm
        let function =
            switch algorithm {
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            }
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, function, nil) == 1 else {
            // Every libcrypto has both; what is left is a process without memory.
            preconditionFailure("libcrypto has no \(algorithm.name)")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    package func add(_ bytes: UnsafeRawBufferPointer) {
        guard EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1 else {
            preconditionFailure("\(algorithm.name) took no bytes")
        }
    }

    /// What all bytes so far come to. The last call.
    package func digest() -> ContentDigest {
        var bytes = [UInt8](repeating: 0, count: algorithm.byteCount)
        guard EVP_DigestFinal_ex(context, &bytes, nil) == 1, let digest = ContentDigest(algorithm, bytes) else {
            preconditionFailure("\(algorithm.name) has no end")
        }
        return digest
    }
}
