internal import COpenSSL

/// Makes X.509 certificates.
struct CertificateBuilder {
    var commonName: String
    var days: Int
    /// Seconds by which the certificate begins early.
    var backdating: Int
    /// Numbers of extensions and their values in OpenSSL's configuration form.
    var extensions: [(Int32, String)]

    /// A certificate for `key`, signed by `issuer` or by itself.
    func sign(key: Key, issuer: (certificate: Certificate, key: Key)?) throws(DevelopmentServerError) -> Certificate {
        let failure = "The certificate for \(commonName) could not be made"
        guard let pointer = X509_new() else { throw .openSSL(failure) }
        let certificate = Certificate(owning: pointer)
        let version3 = 2
        guard X509_set_version(pointer, version3) == 1, setSerial(pointer), setTimes(pointer), setSubject(pointer),
            X509_set_issuer_name(pointer, X509_get_subject_name(issuer?.certificate.pointer ?? pointer)) == 1,
            X509_set_pubkey(pointer, key.pointer) == 1,
            addExtensions(pointer, issuer: issuer?.certificate.pointer ?? pointer),
            X509_sign(pointer, issuer?.key.pointer ?? key.pointer, EVP_sha256()) > 0
        else { throw .openSSL(failure) }
        return certificate
    }

    /// 127 random bits: browsers refuse two certificates of one authority with the same number.
    private func setSerial(_ certificate: OpaquePointer) -> Bool {
        guard let number = BN_new() else { return false }
        defer { BN_free(number) }
        guard BN_rand(number, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 else { return false }
        return BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil
    }

    private func setTimes(_ certificate: OpaquePointer) -> Bool {
        guard let start = copenssl_time_from_now(-backdating), let end = copenssl_time_from_now(days * 86_400) else {
            return false
        }
        defer {
            ASN1_TIME_free(start)
            ASN1_TIME_free(end)
        }
        return X509_set1_notBefore(certificate, start) == 1 && X509_set1_notAfter(certificate, end) == 1
    }

    private func setSubject(_ certificate: OpaquePointer) -> Bool {
        // The field's own limit; the names that count stand in the extension for alternative names.
        let commonNameMax = 64
        let text = Array(commonName.utf8.prefix(commonNameMax))
        return X509_NAME_add_entry_by_txt(
            X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, text, Int32(text.count), -1, 0) == 1
    }

    private func addExtensions(_ certificate: OpaquePointer, issuer: OpaquePointer) -> Bool {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
        let identifiers = [
            (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
        ]
        for (number, value) in identifiers + extensions {
            guard let item = X509V3_EXT_conf_nid(nil, &context, number, value) else { return false }
            defer { X509_EXTENSION_free(item) }
            guard X509_add_ext(certificate, item, -1) == 1 else { return false }
        }
        return true
    }
}
