// libcurl's results in the terms of the transport seam.
internal import AssetsModel
internal import CCurl
internal import Glibc

enum CurlFailure {
    /// `isConnected` tells a stall from a connection that never stood: libcurl has one result for both.
    static func describe(
        _ code: CURLcode, _ text: String, osError: Int, isConnected: Bool
    ) -> TransportFailure {
        func failure(_ kind: TransportFailure.Kind, _ number: Int) -> TransportFailure {
            TransportFailure(kind: kind, code: number, text: text)
        }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            return failure(.resolve, URLErrorCode.cannotFindHost)
        case CURLE_COULDNT_CONNECT:
            let hasNoNetwork = [ENETUNREACH, ENETDOWN, EADDRNOTAVAIL].contains(Int32(truncatingIfNeeded: osError))
            return failure(
                .connect, hasNoNetwork ? URLErrorCode.notConnectedToInternet : URLErrorCode.cannotConnectToHost)
        case CURLE_OPERATION_TIMEDOUT:
            return failure(isConnected ? .stall : .timeout, URLErrorCode.timedOut)
        case CURLE_PEER_FAILED_VERIFICATION:
            return failure(.tls, URLErrorCode.serverCertificateUntrusted)
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            return TransportFailure(
                kind: .tls, code: URLErrorCode.serverCertificateUntrusted,
                text: "the server's public key is none of those that NSPinnedDomains names for it")
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS:
            return failure(.tls, URLErrorCode.secureConnectionFailed)
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
            return failure(.reset, URLErrorCode.networkConnectionLost)
        case CURLE_PARTIAL_FILE:
            return failure(.partial, URLErrorCode.networkConnectionLost)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING, CURLE_HTTP2,
            CURLE_HTTP2_STREAM:
            return failure(.protocol, URLErrorCode.badServerResponse)
        case CURLE_URL_MALFORMAT:
            return failure(.other, URLErrorCode.badURL)
        default:
            return failure(.other, URLErrorCode.unknown)
        }
    }
}
