// The call filter of extensions: the list of AssetsSandbox, compiled by libseccomp.
internal import AssetsOS
internal import AssetsSandbox
internal import CLinux
internal import CSeccomp
internal import Glibc

/// Compiles the list once; each extension gets the same program.
enum CallFilter {
    /// Finding the rule of a call by halving, not one after the other: the kernel runs the filter at each call.
    private static let binaryTree: UInt32 = 2

    /// The program as the kernel takes it.
    static func compile() throws(SystemCallError) -> [UInt8] {
        guard let filter = seccomp_init(cseccomp_refuse(UInt32(EPERM))) else {
            throw SystemCallError(call: "seccomp_init", number: ENOMEM)
        }
        defer { seccomp_release(filter) }
        // Calls in the tongue of another processor are numbered otherwise.
        try done(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, cseccomp_refuse(UInt32(EPERM))))
        _ = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, binaryTree)
        for rule in SystemCallRule.allowed { try add(rule, to: filter) }
        for name in SystemCallRule.unknown {
            guard let number = number(of: name) else { continue }
            try done(seccomp_rule_add_array(filter, cseccomp_refuse(UInt32(ENOSYS)), number, 0, nil))
        }
        return try export(filter)
    }

    private static func add(_ rule: SystemCallRule, to filter: scmp_filter_ctx) throws(SystemCallError) {
        // Older calls are missing on younger processors.
        guard let number = number(of: rule.name) else { return }
        guard !rule.demands.isEmpty else {
            return try done(seccomp_rule_add_array(filter, cseccomp_allow, number, 0, nil))
        }
        for demand in rule.demands {
            let comparisons = ([demand] + demand.with).map {
                scmp_arg_cmp(arg: $0.argument, op: SCMP_CMP_MASKED_EQ, datum_a: $0.mask, datum_b: $0.value)
            }
            try done(
                seccomp_rule_add_array(filter, cseccomp_allow, number, UInt32(comparisons.count), comparisons))
        }
    }

    /// nil for what this processor or this libseccomp does not know.
    private static func number(of name: String) -> Int32? {
        let number = seccomp_syscall_resolve_name(name)
        return number >= 0 ? number : nil
    }

    private static func export(_ filter: scmp_filter_ctx) throws(SystemCallError) -> [UInt8] {
        let file = Descriptor(owning: try check("memfd_create") { clinux_memory_file("filter") })
        try done(seccomp_export_bpf(filter, file.rawValue))
        let raw = file.rawValue
        let size = try check("lseek") { lseek(raw, 0, SEEK_END) }
        var bytes = [UInt8](repeating: 0, count: size)
        guard try check("pread", { pread(raw, &bytes, bytes.count, 0) }) == size else {
            throw SystemCallError(call: "pread", number: EIO)
        }
        return bytes
    }

    /// libseccomp answers the negative error number.
    private static func done(_ result: Int32) throws(SystemCallError) {
        if result < 0 { throw SystemCallError(call: "libseccomp", number: -result) }
    }
}
