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
    private let context: TLSContext?
    /// What goes wrong with the handshake of a client that names this host.
    var chooseFault: (String) -> AppliedFaults = { _ in AppliedFaults() }
    /// What went wrong with it.
    private(set) var fault: AppliedFaults?

    /// Takes a socket that does not block.
    init?(_ socket: consuming Descriptor, context: TLSContext?) {
        self.socket = socket
        self.context = context
        if let context {
            guard let ssl = SSL_new(context.pointer) else { return nil }
            self.ssl = ssl
            guard SSL_set_fd(ssl, self.socket.rawValue) == 1 else { return nil }
            SSL_set_accept_state(ssl)
            // The stream outlives its SSL, and both are used on one thread.
            copenssl_set_owner(ssl, Unmanaged.passUnretained(self).toOpaque())
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

    /// Closing sends a reset: what the peer has not received yet is lost.
    func resetWhenClosed() {
        var off = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket.rawValue, SOL_SOCKET, SO_LINGER, &off, socklen_t(MemoryLayout.size(ofValue: off)))
    }

    /// The handshake has told the host; false breaks it off.
    fileprivate func begins(toHost host: String) -> Bool {
        let faults = chooseFault(host)
        let shown: TLSContext?
        if faults.has(.tlsExpired) {
            shown = context?.expired
        } else if faults.has(.tlsUntrusted) {
            shown = context?.untrusted
        } else {
            guard faults.has(.tlsRefused) else { return true }
            shown = nil
        }
        fault = faults
        guard let ssl, let shown else { return false }
        return SSL_set_SSL_CTX(ssl, shown.pointer) != nil
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

/// Asks the stream of a handshake what its client is shown.
let chooseByServerName:
    @convention(c) (OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?) -> Int32 =
        { ssl, alert, _ in
            guard let ssl, let owner = copenssl_owner(ssl) else { return SSL_TLSEXT_ERR_OK }
            let host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) } ?? ""
            let stream = Unmanaged<Stream>.fromOpaque(owner).takeUnretainedValue()
            guard !stream.begins(toHost: host) else { return SSL_TLSEXT_ERR_OK }
            alert?.pointee = SSL_AD_HANDSHAKE_FAILURE
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
