// libcurl's results in the terms of the transport seam. docs/retry.md has the table; a test compares the two.
internal import AssetsModel
internal import CCurl
internal import Glibc

/// Why libcurl ended a transfer without the whole response, and what it knows about it.
struct CurlFailure {
    var code: CURLcode
    /// libcurl's own words.
    var text: String
    var osError = 0
    /// The secure connection stood and the request was on its way: tells a stall from a connection that never stood.
    var isConnected = false
    var usesProxy = false
    /// What the proxy answered to CONNECT; 0 when it was not asked.
    var connectStatus = 0
    /// OpenSSL's verdict on the server's certificate.
    var verifyResult = 0

    /// For the seam.
    var described: TransportFailure {
        if let status = proxyRefusal {
            return TransportFailure(
                kind: .proxy, code: URLErrorCode.cannotConnectToHost, text: "the proxy answered \(status)")
        }
        guard let kind = Self.kinds[code.rawValue] else {
            return TransportFailure(kind: .other, code: URLErrorCode.unknown, text: text)
        }
        switch kind {
        case .timeout where isConnected:
            return TransportFailure(kind: .stall, code: URLErrorCode.timedOut, text: text)
        case .connect where usesProxy:
            return TransportFailure(
                kind: .proxy, code: URLErrorCode.cannotConnectToHost, text: "the proxy cannot be reached: \(text)")
        default:
            return TransportFailure(kind: kind, code: number(of: kind), text: words)
        }
    }

    /// A proxy that lets nothing through looks to libcurl like a connection that broke.
    private var proxyRefusal: Int? {
        guard connectStatus >= 300, code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT else { return nil }
        return connectStatus
    }

    private func number(of kind: TransportFailure.Kind) -> Int {
        switch kind {
        case .resolve: URLErrorCode.cannotFindHost
        case .connect: hasNoNetwork ? URLErrorCode.notConnectedToInternet : URLErrorCode.cannotConnectToHost
        case .proxy: URLErrorCode.cannotConnectToHost
        case .tls: URLErrorCode.secureConnectionFailed
        case .certificate: URLErrorCode.serverCertificateUntrusted
        case .reset, .partial: URLErrorCode.networkConnectionLost
        case .timeout, .stall: URLErrorCode.timedOut
        case .protocol: URLErrorCode.badServerResponse
        case .invalid: code == CURLE_URL_MALFORMAT ? URLErrorCode.badURL : URLErrorCode.unknown
        case .cancelled: URLErrorCode.cancelled
        case .memory, .other: URLErrorCode.unknown
        }
    }

    private var hasNoNetwork: Bool {
        [ENETUNREACH, ENETDOWN, EADDRNOTAVAIL].contains(Int32(truncatingIfNeeded: osError))
    }

    private var words: String {
        if code == CURLE_SSL_PINNEDPUBKEYNOTMATCH {
            return "the server's public key is none of those that NSPinnedDomains names for it"
        }
        // X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED
        if code == CURLE_PEER_FAILED_VERIFICATION, verifyResult == 9 || verifyResult == 10 {
            return text + "; check this machine's date as well"
        }
        return text
    }

    /// What every result of libcurl means here. Those in the last group belong to other protocols, to options that are
    /// not set, or to no version of today; should one come all the same, another attempt is all that can be tried.
    static let kinds: [UInt32: TransportFailure.Kind] = {
        var kinds: [UInt32: TransportFailure.Kind] = [:]
        for (kind, codes) in groups { for code in codes { kinds[code.rawValue] = kind } }
        return kinds
    }()

    private static let groups: [(TransportFailure.Kind, [CURLcode])] = [
        (.resolve, [CURLE_COULDNT_RESOLVE_HOST]),
        (.proxy, [CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY]),
        (.connect, [CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED]),
        (.timeout, [CURLE_OPERATION_TIMEDOUT]),
        (.tls, [CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_SHUTDOWN_FAILED]),
        (
            .certificate,
            [
                CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_ISSUER_ERROR,
                CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE,
            ]
        ),
        (.reset, [CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_FAIL_REWIND]),
        (.partial, [CURLE_PARTIAL_FILE]),
        (
            .protocol,
            [
                CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP2,
                CURLE_HTTP2_STREAM, CURLE_HTTP3, CURLE_QUIC_CONNECT_ERROR, CURLE_RANGE_ERROR,
                CURLE_BAD_DOWNLOAD_RESUME, CURLE_HTTP_RETURNED_ERROR, CURLE_TOO_MANY_REDIRECTS,
                CURLE_FILESIZE_EXCEEDED,
            ]
        ),
        (.memory, [CURLE_OUT_OF_MEMORY, CURLE_FAILED_INIT]),
        (
            .invalid,
            [
                CURLE_URL_MALFORMAT, CURLE_NOT_BUILT_IN, CURLE_BAD_FUNCTION_ARGUMENT, CURLE_UNKNOWN_OPTION,
                CURLE_SETOPT_OPTION_SYNTAX, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_NOTFOUND,
                CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
            ]
        ),
        (.cancelled, [CURLE_WRITE_ERROR, CURLE_ABORTED_BY_CALLBACK]),
        (
            .other,
            [
                CURLE_NO_CONNECTION_AVAILABLE, CURLE_AGAIN, CURLE_RECURSIVE_API_CALL, CURLE_UNRECOVERABLE_POLL,
                CURLE_READ_ERROR, CURLE_HTTP_POST_ERROR, CURLE_FUNCTION_NOT_FOUND, CURLE_AUTH_ERROR,
                CURLE_LOGIN_DENIED, CURLE_REMOTE_ACCESS_DENIED, CURLE_REMOTE_FILE_NOT_FOUND, CURLE_REMOTE_FILE_EXISTS,
                CURLE_REMOTE_DISK_FULL, CURLE_UPLOAD_FAILED, CURLE_QUOTE_ERROR, CURLE_CHUNK_FAILED,
                CURLE_FILE_COULDNT_READ_FILE, CURLE_USE_SSL_FAILED, CURLE_SSH, CURLE_LDAP_CANNOT_BIND,
                CURLE_LDAP_SEARCH_FAILED, CURLE_RTSP_CSEQ_ERROR, CURLE_RTSP_SESSION_ERROR, CURLE_TFTP_NOTFOUND,
                CURLE_TFTP_PERM, CURLE_TFTP_ILLEGAL, CURLE_TFTP_UNKNOWNID, CURLE_TFTP_NOSUCHUSER,
                CURLE_FTP_ACCEPT_FAILED, CURLE_FTP_ACCEPT_TIMEOUT, CURLE_FTP_WEIRD_PASS_REPLY,
                CURLE_FTP_WEIRD_PASV_REPLY, CURLE_FTP_WEIRD_227_FORMAT, CURLE_FTP_CANT_GET_HOST,
                CURLE_FTP_COULDNT_SET_TYPE, CURLE_FTP_COULDNT_RETR_FILE, CURLE_FTP_PORT_FAILED,
                CURLE_FTP_COULDNT_USE_REST, CURLE_FTP_PRET_FAILED, CURLE_FTP_BAD_FILE_LIST, CURLE_OBSOLETE20,
                CURLE_OBSOLETE24, CURLE_OBSOLETE29, CURLE_OBSOLETE32, CURLE_OBSOLETE40, CURLE_OBSOLETE44,
                CURLE_OBSOLETE46, CURLE_OBSOLETE50, CURLE_OBSOLETE51, CURLE_OBSOLETE57, CURLE_OBSOLETE62,
                CURLE_OBSOLETE75, CURLE_OBSOLETE76,
            ]
        ),
    ]
}
