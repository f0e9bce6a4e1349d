// The server asks for a password: the three ways to write the answer.
import BackgroundAssets

final class AsyncAnswer: NSObject, BADownloadManagerDelegate {
    private let keys = KeyStore()

    func download(
        _ download: BADownload, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        guard challenge.previousFailureCount == 0,
            challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic
        else { return (.cancelAuthenticationChallenge, nil) }
        guard let password = await keys.password(for: challenge.protectionSpace.host) else {
            return (.performDefaultHandling, nil)
        }
        return (.useCredential, URLCredential(user: "reader", password: password, persistence: .none))
    }
}

actor KeyStore {
    func password(for host: String) -> String? { host.isEmpty ? nil : "secret" }
}

final class PlainHandler: NSObject, BADownloadManagerDelegate {
    func download(
        _ download: BADownload,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        switch challenge.protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest:
            let credential = URLCredential(user: "reader", password: "secret", persistence: .forSession)
            completionHandler(.useCredential, credential)
        default:
            completionHandler(.rejectProtectionSpace, nil)
        }
    }
}

final class SendableHandler: NSObject, BADownloadManagerDelegate {
    let queue = DispatchQueue(label: "credentials")

    func download(
        _ download: BADownload,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let proposed = challenge.proposedCredential
        queue.async {
            completionHandler(
                .useCredential, proposed ?? URLCredential(user: "reader", password: "secret", persistence: .none))
        }
    }
}
