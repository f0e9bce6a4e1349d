// Bytes of one connection, plain or through TLS; neither ever blocks.
internal import AssetsOS
internal import COpenSSL
internal import Glibc

/// What became of a read or write.
enum StreamResult: Equatable {
    case bytes(Int)
    /// Try again when the socket can be read.
    case awaitsRead
    /// Try again when the socket can be written.
    case awaitsWrite
    /// The peer ended it, or it broke.
    case ended
}

/// A connected socket.
final class Stream {
    let socket: Descriptor
    private let ssl: OpaquePointer?

    /// Takes a socket that does not block.
    init?(_ socket: consuming Descriptor, context: TLSContext?) {
        self.socket = socket
        if let context {
            guard let ssl = SSL_new(context.pointer) else { return nil }
            self.ssl = ssl
            guard SSL_set_fd(ssl, self.socket.rawValue) == 1 else { return nil }
            SSL_set_accept_state(ssl)
        } else {
            ssl = nil
        }
    }

    deinit { if let ssl { SSL_free(ssl) } }

    /// Whether files can go to the socket without passing through this process.
    var takesFiles: Bool { ssl == nil }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> StreamResult {
        if let ssl {
            ERR_clear_error()
            return result(SSL_read(ssl, buffer.baseAddress, Int32(buffer.count)), ssl: ssl)
        }
        let count = retried { recv(socket.rawValue, buffer.baseAddress, buffer.count, 0) }
        return count == 0 ? .ended : result(count, or: .awaitsRead)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        if let ssl {
            ERR_clear_error()
            return result(SSL_write(ssl, bytes.baseAddress, Int32(bytes.count)), ssl: ssl)
        }
        return result(
            retried { Glibc.send(socket.rawValue, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) },
            or: .awaitsWrite)
    }

    /// Sends bytes of a file; only where `takesFiles`. A file that ends early counts as the connection's end.
    func send(_ file: borrowing Descriptor, from offset: Int64, count: Int) -> StreamResult {
        var position = off_t(offset)
        let fd = file.rawValue
        let sent = retried { sendfile(socket.rawValue, fd, &position, count) }
        return sent == 0 ? .ended : result(sent, or: .awaitsWrite)
    }

    /// Says that nothing more is sent; what the peer still sends can be read.
    func finishWriting() {
        if let ssl { SSL_shutdown(ssl) }
        shutdown(socket.rawValue, Int32(SHUT_WR))
    }

    private func retried(_ body: () -> Int) -> Int {
        while true {
            let result = body()
            if result != -1 || errno != EINTR { return result }
        }
    }

    private func result(_ count: Int, or waiting: StreamResult) -> StreamResult {
        if count >= 0 { return .bytes(count) }
        return errno == EAGAIN ? waiting : .ended
    }

    private func result(_ count: Int32, ssl: OpaquePointer) -> StreamResult {
        if count > 0 { return .bytes(Int(count)) }
        switch SSL_get_error(ssl, count) {
        case SSL_ERROR_WANT_READ: return .awaitsRead
        case SSL_ERROR_WANT_WRITE: return .awaitsWrite
        default: return .ended
        }
    }
}

/// The server's certificate and key as OpenSSL wants them.
final class TLSContext {
    let pointer: OpaquePointer

    init(_ identity: TLSIdentity) throws(DevelopmentServerError) {
        guard let pointer = SSL_CTX_new(TLS_server_method()) else { throw .openSSL("TLS cannot be set up") }
        self.pointer = pointer
        copenssl_require_tls12(pointer)
        copenssl_allow_partial_writes(pointer)
        SSL_CTX_set_alpn_select_cb(pointer, selectHTTP11, nil)
        let certificates = try PEM.certificates(identity.certificateChain)
        let key = try PEM.privateKey(identity.privateKey)
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
