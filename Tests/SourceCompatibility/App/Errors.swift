// What comes of failures: codes of the framework, errors of the network, and casts of all kinds.
import BackgroundAssets

enum Failure: Equatable {
    case already
    case framework(BAErrorCode)
    case offline
    case network(Int)
    case other(String)

    init(_ error: any Error) {
        let error = error as NSError
        switch (error.domain, error.code) {
        case (BAErrorDomain, BAErrorCode.downloadAlreadyScheduled.rawValue): self = .already
        case (BAErrorDomain, let code):
            self = BAErrorCode(rawValue: code).map(Failure.framework) ?? .other(error.domain)
        case (NSURLErrorDomain, NSURLErrorNotConnectedToInternet): self = .offline
        case (NSURLErrorDomain, let code): self = .network(code)
        default: self = .other(error.localizedFailureReason ?? error.localizedDescription)
        }
    }
}

func schedule(_ download: BADownload) -> Failure? {
    do {
        try BADownloadManager.shared.scheduleDownload(download)
        return nil
    } catch let error as NSError where error.domain == BAErrorDomain && error.code == 100 {
        return .already
    } catch let error as URLError {
        return .network(error.errorCode)
    } catch {
        return Failure(error)
    }
}

func isCancellable(_ download: BADownload) -> Bool {
    do {
        try BADownloadManager.shared.cancel(download)
        return true
    } catch let error as NSError {
        let reason = error.userInfo[NSLocalizedFailureReasonErrorKey] as? String
        print("Cannot cancel: \(reason ?? error.localizedDescription)")
        return false
    }
}
