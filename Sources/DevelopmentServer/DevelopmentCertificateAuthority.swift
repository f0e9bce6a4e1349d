// A certificate authority for one device, so that https works while developing without weakening it.
internal import AssetsOS
internal import COpenSSL
internal import Glibc

/// A certificate with its chain and its key, as PEM text.
package struct TLSIdentity: Hashable, Sendable {
    /// The server's certificate first.
    package var certificateChain: String
    package var privateKey: String
    /// For faults: the same names and the same key, but out of date, or signed by nobody.
    package var expiredChain: String
    package var untrustedChain: String
}

/// An authority in a folder of its own that can speak for this machine only.
///
/// Its certificate is constrained to localhost, 127.0.0.1, ::1 and names below .localhost and .test, so that trusting
/// it gives nobody power over real hosts, even if the key gets lost.
package struct DevelopmentCertificateAuthority: Sendable {
    /// Names for which it can issue.
    package static let permittedNames = "localhost, *.localhost, *.test, 127.0.0.1 and ::1"

    private static let certificateName = "ca.pem"
    private static let keyName = "ca.key"
    /// Certificates begin a day early, for machines whose clock is behind.
    private static let backdating = 86_400
    private static let authorityDays = 5 * 365
    private static let leafDays = 90
    /// Bytes of either file.
    private static let fileMax = 64 << 10

    /// The authority's own certificate, for clients to trust.
    package let certificatePEM: String
    package let certificatePath: String
    private let certificate: CertificateBox
    private let key: KeyBox

    /// Opens the authority in `folder`, such as `<device root>/DevelopmentCA`, and makes it when there is none or
    /// when it has less than 90 days left. Blocks.
    package init(folder: String) throws(DevelopmentServerError) {
        let directory = try Self.usable(folder) { () throws(SystemCallError) in
            if mkdir(folder, 0o700) == -1 && errno != EEXIST { throw SystemCallError(call: "mkdir", number: errno) }
            return try Descriptor.directory(folder)
        }
        // Two tools that start at once must not each make an authority; closing the file unlocks it.
        let lock = try Self.usable(folder) { () throws(SystemCallError) in
            let lock = try directory.open(beneath: "lock", flags: O_RDWR | O_CREAT, mode: 0o600)
            let fd = lock.rawValue
            try check("flock") { flock(fd, LOCK_EX) }
            return lock
        }
        let certificate: Certificate
        let key: Key
        if let stored = try Self.load(directory, folder: folder) {
            (certificate, key) = stored
        } else {
            (certificate, key) = try Self.make(directory, folder: folder)
        }
        certificatePEM = try PEM.text(certificate)
        certificatePath = folder + "/" + Self.certificateName
        self.certificate = CertificateBox(certificate)
        self.key = KeyBox(key)
        _ = consume lock
    }

    /// A new certificate for host names and addresses, valid for 90 days.
    package func issue(for names: [String]) throws(DevelopmentServerError) -> TLSIdentity {
        guard let first = names.first else { throw DevelopmentServerError(.certificate, "No name for a certificate") }
        for name in names where !Self.isPermitted(name) {
            throw DevelopmentServerError(
                .certificate, "The development authority cannot speak for \(name), only for \(Self.permittedNames)")
        }
        guard let pointer = copenssl_generate_p256() else { throw .openSSL("No key could be made") }
        let key = Key(owning: pointer)
        let authority = (certificate.value, self.key.value)
        func chain(backdating: Int, days: Int, isSigned: Bool = true) throws(DevelopmentServerError) -> String {
            let builder = Self.leaf(for: names, commonName: first, backdating: backdating, days: days)
            let leaf = try PEM.text(try builder.sign(key: key, issuer: isSigned ? authority : nil))
            return isSigned ? leaf + certificatePEM : leaf
        }
        return TLSIdentity(
            certificateChain: try chain(backdating: Self.backdating, days: Self.leafDays),
            privateKey: try PEM.text(key),
            expiredChain: try chain(backdating: 2 * Self.backdating, days: -1),
            untrustedChain: try chain(backdating: Self.backdating, days: Self.leafDays, isSigned: false))
    }

    private static func leaf(
        for names: [String], commonName: String, backdating: Int, days: Int
    ) -> CertificateBuilder {
        let alternatives = names.map { (isAddress($0) ? "IP:" : "DNS:") + $0 }.joined(separator: ",")
        return CertificateBuilder(
            commonName: commonName, days: days, backdating: backdating,
            extensions: [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, alternatives),
            ])
    }

    // MARK: Names

    private static func isPermitted(_ name: String) -> Bool {
        if isAddress(name) { return true }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        let isName = labels.allSatisfy { label in
            !label.isEmpty && label.utf8.count <= 63
                && label.utf8.allSatisfy {
                    (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "-")
                }
        }
        return isName && name.utf8.count <= 253
            && (name == "localhost" || name.hasSuffix(".localhost") || name.hasSuffix(".test"))
    }

    private static func isAddress(_ name: String) -> Bool { name == "127.0.0.1" || name == "::1" }

    // MARK: Files

    private static func usable(
        _ folder: String, _ body: () throws(SystemCallError) -> Descriptor
    ) throws(DevelopmentServerError) -> Descriptor {
        do throws(SystemCallError) { return try body() } catch {
            throw DevelopmentServerError(.certificate, "The folder \(folder) cannot be used", cause: error)
        }
    }

    /// nil when there is none, or one that is about to end. Damaged files are not replaced: somebody may trust them.
    private static func load(
        _ directory: borrowing Descriptor, folder: String
    ) throws(DevelopmentServerError) -> (Certificate, Key)? {
        let texts: (certificate: String?, key: String?)
        do throws(SystemCallError) {
            texts = (try read(directory, certificateName), try read(directory, keyName))
        } catch {
            throw DevelopmentServerError(.certificate, "Cannot read the authority in \(folder)", cause: error)
        }
        guard let certificateText = texts.certificate, let keyText = texts.key else { return nil }
        do throws(DevelopmentServerError) {
            let key = try PEM.privateKey(keyText)
            guard let certificate = try PEM.certificates(certificateText).first,
                X509_check_private_key(certificate.pointer, key.pointer) == 1
            else { throw .openSSL("The key does not fit") }
            return remainingDays(certificate) > leafDays ? (certificate, key) : nil
        } catch {
            throw DevelopmentServerError(
                .certificate, "The development authority in \(folder) is damaged; remove the folder: \(error)")
        }
    }

    private static func remainingDays(_ certificate: Certificate) -> Int {
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(certificate.pointer)) == 1 else { return 0 }
        return Int(days)
    }

    private static func make(
        _ directory: borrowing Descriptor, folder: String
    ) throws(DevelopmentServerError) -> (Certificate, Key) {
        guard let pointer = copenssl_generate_p256() else { throw .openSSL("No key could be made") }
        let key = Key(owning: pointer)
        let constraints =
            "critical,permitted;DNS:localhost,permitted;DNS:test,permitted;IP:127.0.0.1/255.255.255.255,"
            + "permitted;IP:0:0:0:0:0:0:0:1/FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF:FFFF"
        let certificate = try CertificateBuilder(
            commonName: "Background Assets development", days: authorityDays, backdating: backdating,
            extensions: [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
                (NID_key_usage, "critical,keyCertSign,cRLSign"), (NID_name_constraints, constraints),
            ]
        ).sign(key: key, issuer: nil)
        let keyText = try PEM.text(key)
        let certificateText = try PEM.text(certificate)
        do throws(SystemCallError) {
            try replace(directory, keyName, with: keyText, mode: 0o600)
            try replace(directory, certificateName, with: certificateText, mode: 0o644)
            let fd = directory.rawValue
            try check("fsync") { fsync(fd) }
        } catch {
            throw DevelopmentServerError(.certificate, "Cannot write the authority to \(folder)", cause: error)
        }
        return (certificate, key)
    }

    private static func read(_ directory: borrowing Descriptor, _ name: String) throws(SystemCallError) -> String? {
        let file: Descriptor
        do throws(SystemCallError) {
            file = try directory.open(beneath: name, flags: O_RDONLY | O_NONBLOCK)
        } catch {
            if error.number == ENOENT { return nil }
            throw error
        }
        var bytes = [UInt8](repeating: 0, count: fileMax)
        let fd = file.rawValue
        let count = try check("read") { Glibc.read(fd, &bytes, bytes.count) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    private static func replace(
        _ directory: borrowing Descriptor, _ name: String, with text: String, mode: UInt64
    ) throws(SystemCallError) {
        let temporary = name + ".new"
        let directoryFD = directory.rawValue
        unlinkat(directoryFD, temporary, 0)
        let file = try directory.open(beneath: temporary, flags: O_WRONLY | O_CREAT | O_EXCL, mode: mode)
        let fd = file.rawValue
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let written = try check("write") { rest.withUnsafeBytes { write(fd, $0.baseAddress, $0.count) } }
            rest = rest.dropFirst(written)
        }
        try check("fdatasync") { fdatasync(fd) }
        try check("renameat") { renameat(directoryFD, temporary, directoryFD, name) }
    }
}

/// OpenSSL counts references atomically and nothing changes a certificate after it was made or read.
private struct CertificateBox: @unchecked Sendable {
    let value: Certificate
    init(_ value: Certificate) { self.value = value }
}

/// As with certificates: a key is only read after it was made.
private struct KeyBox: @unchecked Sendable {
    let value: Key
    init(_ value: Key) { self.value = value }
}
