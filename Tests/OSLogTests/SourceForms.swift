// Lines as sources of apps have them, with nothing but `import OSLog`.
import OSLog
import Testing

extension Logger {
    fileprivate static let app = Logger(subsystem: Bundle.main.bundleIdentifier ?? "org.example", category: "app")
}

extension OSLog {
    fileprivate static let pointsOfInterest = OSLog(subsystem: "org.example", category: .pointsOfInterest)
}

@Suite struct SourceForms {
    @Test("The ways in which sources log compile, and write to a source that is disabled")
    func forms() {
        let silent = Logger(OSLog.disabled)
        let error: any Error = CocoaError(.fileNoSuchFile)
        let count = Int.random(in: 1...4)
        silent.log("plain")
        silent.log(level: .info, "\(count) files")
        silent.trace("trace")
        silent.debug("\(#function): \(count)")
        silent.info("\(error.localizedDescription)")
        silent.error("\(error) \(CocoaError(.fileNoSuchFile)), \(error, privacy: .public)")
        silent.notice("\(error as NSError, privacy: .public)")
        silent.warning("\(URL(fileURLWithPath: "/x"), privacy: .private(mask: .hash))")
        silent.error("Failed: \(String(describing: error), privacy: .public)")
        silent.critical("\(Float(0.5), format: .fixed(precision: 1)) \(Date())")
        silent.fault("\([1, 2]) \(Optional(count).map(String.init) ?? "none")")
        let level: OSLogType = count > 2 ? .debug : .default
        os_log("%@ - %d", log: .disabled, type: .debug, #function, #line)
        os_log("plain", log: .disabled, type: level)
        os_log(.error, log: .disabled, "\(count) new")
        os_log(level, log: OSLog.disabled, "old %d", count)
        #expect(OSLogType.fault.rawValue == OS_LOG_TYPE_FAULT)
        _ = Logger.app
        #expect(OSLog.pointsOfInterest.isEnabled(type: .debug))
    }
}
