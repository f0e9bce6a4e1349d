// The framework may get new cases: switches that list today's are a warning in mode 5 and an error in mode 6.
import BackgroundAssets

func isOver(_ state: BADownload.State) -> Bool {
    // expected-five-warning@+3 {{may have additional unknown values}}
    // expected-six-error@+2 {{may have additional unknown values}}
    // expected-note@+1 {{handle unknown values using "@unknown default"}}
    switch state {
    case .finished, .failed: return true
    case .created, .waiting, .downloading: return false
    }
}

func isEssentialAllowed(_ request: BAContentRequest) -> Bool {
    // expected-five-warning@+3 {{may have additional unknown values}}
    // expected-six-error@+2 {{may have additional unknown values}}
    // expected-note@+1 {{handle unknown values using "@unknown default"}}
    switch request {
    case .install, .update: return true
    case .periodic, .languageChange: return false
    }
}
