// What bounds an extension's process besides the measuring of its memory: backstops that the kernel holds.
internal import AssetsModel
package import AssetsSandbox
internal import Glibc

package enum ExtensionLimits {
    /// No core file; and, but for sanitizers, who reserve far more than they use, stack and anonymous memory.
    package static let all: [SandboxLimit] = {
        let core = [SandboxLimit(resource: Int32(RLIMIT_CORE.rawValue), value: 0)]
        #if SANITIZED
            return core
        #else
            return core + [
                SandboxLimit(
                    resource: Int32(RLIMIT_STACK.rawValue), value: UInt64(PolicyNumbers.extensionStackMax)),
                SandboxLimit(resource: Int32(RLIMIT_DATA.rawValue), value: UInt64(PolicyNumbers.extensionDataMax)),
                SandboxLimit(
                    resource: Int32(RLIMIT_NOFILE.rawValue), value: UInt64(PolicyNumbers.extensionDescriptorsMax)),
                SandboxLimit(resource: Int32(RLIMIT_FSIZE.rawValue), value: UInt64(PolicyNumbers.extensionFileMax)),
            ]
        #endif
    }()
}
