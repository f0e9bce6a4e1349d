// Messages about an app's extension; the interface file explains them.

extension DeviceInterface {
    /// How an app's extension may run. state is "absent", "launching", "running", "idle", "suspended" or "ending".
    package struct ExtensionState: Codable, Hashable, Sendable {
        package var state: String
        /// Seconds of a rolling day: used, and those there are.
        package var runtimeUsed: Double
        package var runtimeMax: Double
        /// Bytes of memory of its own.
        package var memoryMax: Int64
        /// Why it may not run now; empty where it may.
        package var reason: String
        package var detail: String

        package init(
            state: String, runtimeUsed: Double, runtimeMax: Double, memoryMax: Int64, reason: String, detail: String
        ) {
            self.state = state
            self.runtimeUsed = runtimeUsed
            self.runtimeMax = runtimeMax
            self.memoryMax = memoryMax
            self.reason = reason
            self.detail = detail
        }

        private enum CodingKeys: String, CodingKey {
            case state
            case runtimeUsed = "runtime_used"
            case runtimeMax = "runtime_max"
            case memoryMax = "memory_max"
            case reason
            case detail
        }
    }

    /// One process of an extension.
    package struct ExtensionRun: Codable, Hashable, Sendable {
        /// Calendar seconds since 1970; endedAt is 0 where it has not ended, or nobody saw its end.
        package var launchedAt: Double
        package var endedAt: Double
        /// Entry points that were called.
        package var calls: Int64
        /// Seconds that counted.
        package var runtime: Double
        /// Most bytes of memory of its own.
        package var memoryPeak: Int64
        /// What it came close to: "memory" or "runtime" from half of the limit on, "size" beyond what its app declares.
        package var warnings: [String]
        /// Why it ended; empty where it was no longer needed.
        package var reason: String
        package var detail: String

        package init(
            launchedAt: Double, endedAt: Double, calls: Int64, runtime: Double, memoryPeak: Int64, warnings: [String],
            reason: String, detail: String
        ) {
            self.launchedAt = launchedAt
            self.endedAt = endedAt
            self.calls = calls
            self.runtime = runtime
            self.memoryPeak = memoryPeak
            self.warnings = warnings
            self.reason = reason
            self.detail = detail
        }

        private enum CodingKeys: String, CodingKey {
            case launchedAt = "launched_at"
            case endedAt = "ended_at"
            case calls
            case runtime
            case memoryPeak = "memory_peak"
            case warnings
            case reason
            case detail
        }
    }

    /// What an app's extension may use, and its last runs, the last first.
    package enum Extension: WireMethod {
        package static let name = "org.backgroundassets.Device.Extension"
        package struct Parameters: Codable, Hashable, Sendable {
            package var app: String

            package init(app: String) {
                self.app = app
            }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var `extension`: ExtensionState
            package var runs: [ExtensionRun]

            package init(`extension`: ExtensionState, runs: [ExtensionRun]) {
                self.`extension` = `extension`
                self.runs = runs
            }
        }
    }
}
