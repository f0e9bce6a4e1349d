// The server's certificates and keys as OpenSSL wants them.
internal import COpenSSL

/// What a server shows in a handshake.
final class TLSContext {
    let pointer: OpaquePointer
    /// Shown where a fault asks for it; nil in these themselves.
    let expired: TLSContext?
    let untrusted: TLSContext?

    /// With what faults show instead.
    convenience init(_ identity: TLSIdentity) throws(DevelopmentServerError) {
        try self.init(
            identity.certificateChain, identity.privateKey,
            expired: TLSContext(identity.expiredChain, identity.privateKey),
            untrusted: TLSContext(identity.untrustedChain, identity.privateKey))
    }

    private init(
        _ chain: String, _ privateKey: String, expired: TLSContext? = nil, untrusted: TLSContext? = nil
    ) throws(DevelopmentServerError) {
        guard let pointer = SSL_CTX_new(TLS_server_method()) else { throw .openSSL("TLS cannot be set up") }
        self.pointer = pointer
        self.expired = expired
        self.untrusted = untrusted
        copenssl_require_tls12(pointer)
        copenssl_allow_partial_writes(pointer)
        // Who resumes a session looks at no certificate, and a wrong one would go unseen.
        copenssl_forbid_resumption(pointer)
        copenssl_set_server_name_callback(pointer, chooseByServerName)
        SSL_CTX_set_alpn_select_cb(pointer, selectHTTP11, nil)
        let certificates = try PEM.certificates(chain)
        let key = try PEM.privateKey(privateKey)
        guard let leaf = certificates.first, SSL_CTX_use_certificate(pointer, leaf.pointer) == 1,
            SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1, SSL_CTX_check_private_key(pointer) == 1
        else { throw .openSSL("The certificate cannot be used") }
        for certificate in certificates.dropFirst() {
            guard copenssl_add_to_chain(pointer, certificate.pointer) == 1 else {
                throw .openSSL("The certificate chain cannot be used")
            }
        }
    }

    deinit { SSL_CTX_free(pointer) }
}

/// Chooses http/1.1 out of a client's list; a client that wants only others is told so by the missing choice.
private let selectHTTP11: SSL_CTX_alpn_select_cb_func = { _, out, outLength, offered, offeredLength, _ in
    guard let offered, let out, let outLength else { return SSL_TLSEXT_ERR_NOACK }
    let wanted = Array("http/1.1".utf8)
    var index = 0
    while index < Int(offeredLength) {
        let length = Int(offered[index])
        guard index + 1 + length <= Int(offeredLength) else { break }
        if UnsafeBufferPointer(start: offered + index + 1, count: length).elementsEqual(wanted) {
            out.pointee = offered + index + 1
            outLength.pointee = UInt8(length)
            return SSL_TLSEXT_ERR_OK
        }
        index += 1 + length
    }
    return SSL_TLSEXT_ERR_NOACK
}
