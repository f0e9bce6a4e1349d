import AssetsOS
import Foundation
import Glibc
import Testing

@testable import DevelopmentServer

@Suite("Development certificates")
struct CertificateTests {
    private func describe(_ pem: String, in place: Place) async throws -> String {
        try place.write(Array(pem.utf8), to: "described.pem")
        return try await run("openssl", ["x509", "-in", place.folder + "/described.pem", "-noout", "-text"]).text
    }

    @Test("An authority is made once and opened again")
    func once() async throws {
        try await inPlace { place in
            let folder = place.folder + "/ca"
            let first = try DevelopmentCertificateAuthority(folder: folder)
            let second = try DevelopmentCertificateAuthority(folder: folder)
            #expect(first.certificatePEM == second.certificatePEM)
            #expect(first.certificatePath == folder + "/ca.pem")
            var status = stat()
            try check("stat") { stat(folder + "/ca.key", &status) }
            #expect(status.st_mode & 0o777 == 0o600)
        }
    }

    @Test("Authorities opened at once are one")
    func atOnce() async throws {
        try await inPlace { place in
            let folder = place.folder + "/ca"
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        try await withCheckedThrowingContinuation { continuation in
                            Thread {
                                continuation.resume(
                                    with: Result { try DevelopmentCertificateAuthority(folder: folder).certificatePEM })
                            }.start()
                        }
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(texts.count == 1)
        }
    }

    @Test("The authority is constrained to this machine")
    func constraints() async throws {
        try await inPlace { place in
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            let text = try await describe(authority.certificatePEM, in: place)
            for words in [
                "CA:TRUE, pathlen:0", "X509v3 Name Constraints: critical", "DNS:localhost", "DNS:test",
                "IP:127.0.0.1/255.255.255.255", "Certificate Sign, CRL Sign", "prime256v1",
            ] { #expect(text.contains(words), "\(words) in \(text)") }
        }
    }

    @Test("A certificate of the authority verifies with openssl")
    func leaf() async throws {
        try await inPlace { place in
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            let identity = try authority.issue(for: ["localhost", "a.localhost", "game.test", "127.0.0.1", "::1"])
            let text = try await describe(identity.certificateChain, in: place)
            for words in ["DNS:a.localhost", "DNS:game.test", "IP Address:127.0.0.1", "CA:FALSE", "TLS Web Server"] {
                #expect(text.contains(words), "\(words) in \(text)")
            }
            let verified = try await run(
                "openssl",
                ["verify", "-CAfile", authority.certificatePath, "-x509_strict", place.folder + "/described.pem"])
            #expect(verified.status == 0, "\(verified.text) \(verified.error)")
            let again = try authority.issue(for: ["localhost"])
            #expect(again.certificateChain != identity.certificateChain && again.privateKey != identity.privateKey)
        }
    }

    @Test(
        "Names of real hosts are refused",
        arguments: [
            "example.com", "test", "localhost.example.com", "evil-test", "10.0.0.1", "", "a.test,DNS:example.com",
            "*.test",
            "A.test", "a..test", "a.test\0.example.com",
        ])
    func refused(name: String) async throws {
        try await inPlace { place in
            let authority = try DevelopmentCertificateAuthority(folder: place.folder + "/ca")
            let error = #expect(throws: DevelopmentServerError.self) { try authority.issue(for: ["localhost", name]) }
            #expect(error?.code == .certificate)
        }
    }

    @Test("A damaged authority is reported and left alone", arguments: ["ca.pem", "ca.key"])
    func damaged(name: String) async throws {
        try await inPlace { place in
            let folder = place.folder + "/ca"
            _ = try DevelopmentCertificateAuthority(folder: folder)
            try place.write(Array("noise".utf8), to: "ca/\(name)")
            let error = #expect(throws: DevelopmentServerError.self) {
                try DevelopmentCertificateAuthority(folder: folder)
            }
            #expect(error?.reason.contains("remove the folder") == true)
            #expect(try String(contentsOfFile: folder + "/" + name, encoding: .utf8) == "noise")
        }
    }

    @Test("An authority with little time left is replaced")
    func expiring() async throws {
        try await inPlace { place in
            let folder = place.folder + "/ca"
            let first = try DevelopmentCertificateAuthority(folder: folder)
            let made = try await run(
                "openssl",
                [
                    "req", "-x509", "-key", folder + "/ca.key", "-days", "30", "-subj", "/CN=old", "-out",
                    folder + "/ca.pem",
                ])
            #expect(made.status == 0, "\(made.error)")
            let second = try DevelopmentCertificateAuthority(folder: folder)
            #expect(second.certificatePEM != first.certificatePEM)
            #expect(try await describe(second.certificatePEM, in: place).contains("CN = Background Assets development"))
        }
    }
}
