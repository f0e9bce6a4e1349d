// Certificates and keys of OpenSSL as owned values, and their text form.
internal import COpenSSL

/// A certificate.
final class Certificate {
    let pointer: OpaquePointer
    init(owning pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }
}

/// A key pair.
final class Key {
    let pointer: OpaquePointer
    init(owning pointer: OpaquePointer) { self.pointer = pointer }
    deinit { EVP_PKEY_free(pointer) }
}

/// Reads and writes the text form.
enum PEM {
    /// Certificates of one chain.
    private static let chainMax = 10

    static func certificates(_ text: String) throws(DevelopmentServerError) -> [Certificate] {
        try reading(text) { (bio) throws(DevelopmentServerError) in
            var certificates: [Certificate] = []
            while certificates.count < chainMax, let pointer = PEM_read_bio_X509(bio, nil, nil, nil) {
                certificates.append(Certificate(owning: pointer))
            }
            // Reading on until nothing is found leaves an error behind.
            defer { ERR_clear_error() }
            guard !certificates.isEmpty else { throw .openSSL("The certificate cannot be read") }
            return certificates
        }
    }

    static func privateKey(_ text: String) throws(DevelopmentServerError) -> Key {
        try reading(text) { (bio) throws(DevelopmentServerError) in
            guard let pointer = PEM_read_bio_PrivateKey(bio, nil, nil, nil) else {
                throw .openSSL("The private key cannot be read")
            }
            return Key(owning: pointer)
        }
    }

    static func text(_ certificate: Certificate) throws(DevelopmentServerError) -> String {
        try writing("The certificate cannot be written") { PEM_write_bio_X509($0, certificate.pointer) }
    }

    static func text(_ key: Key) throws(DevelopmentServerError) -> String {
        try writing("The private key cannot be written") {
            PEM_write_bio_PrivateKey($0, key.pointer, nil, nil, 0, nil, nil)
        }
    }

    private static func reading<R>(
        _ text: String, _ body: (OpaquePointer) throws(DevelopmentServerError) -> R
    ) throws(DevelopmentServerError) -> R {
        let bytes = Array(text.utf8)
        guard let bio = BIO_new(BIO_s_mem()) else { throw .openSSL("Out of memory") }
        defer { BIO_free(bio) }
        BIO_write(bio, bytes, Int32(bytes.count))
        return try body(bio)
    }

    private static func writing(
        _ failure: String, _ body: (OpaquePointer) -> Int32
    ) throws(DevelopmentServerError) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { throw .openSSL(failure) }
        defer { BIO_free(bio) }
        guard body(bio) == 1 else { throw .openSSL(failure) }
        var start: UnsafeMutablePointer<CChar>?
        let count = copenssl_bio_bytes(bio, &start)
        let bytes = UnsafeBufferPointer(start: start, count: max(0, count)).map { UInt8(bitPattern: $0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
