// WWW-Authenticate as servers send it, and as nobody should.
import AssetsModel
import Testing

private func head(_ values: String...) -> TransportHead {
    TransportHead(status: 401, headers: values.map { HeaderField(name: "www-authenticate", value: $0) })
}

@Suite("What a server offers")
struct AuthenticationOfferTests {
    @Test("Basic and Digest are read, whatever stands around them")
    func reads() throws {
        let offers = AuthenticationOffer.offers(
            in: head(
                "Negotiate YIIabc+/==, Basic realm=\"The \\\"inner\\\" room\" , charset=\"UTF-8\"",
                "Digest realm=\"d\", nonce=\"n1\", algorithm=MD5, qop=\"auth,auth-int\", opaque=\"o\", stale=TRUE,"
                    + "domain=\"/a /b\", NewAuth x=1"))
        #expect(offers.map(\.method) == [.digest, .basic])
        #expect(offers.map(\.realm) == ["d", "The \"inner\" room"])
        let digest = try #require(offers.first?.digest)
        #expect(digest.nonce == "n1" && digest.opaque == "o" && digest.isStale && digest.hasQuality)
        #expect(digest.algorithm.name == "MD5" && !digest.hashesUser)
    }

    @Test("The strongest comes first, and of one space the strongest only")
    func order() {
        let offers = AuthenticationOffer.offers(
            in: head(
                "Basic realm=\"a\"", "Digest realm=\"a\", nonce=\"1\", algorithm=MD5-sess, qop=auth",
                "Digest realm=\"a\", nonce=\"2\", algorithm=SHA-256, qop=auth",
                "Digest realm=\"b\", nonce=\"3\"", "Basic realm=\"a\""))
        #expect(offers.map { $0.digest?.algorithm.name ?? "Basic" } == ["SHA-256", "MD5", "Basic"])
        #expect(offers.map(\.realm) == ["a", "b", "a"])
        #expect(offers[1].digest?.hasQuality == false)
    }

    @Test(
        "What is not understood is not there",
        arguments: [
            "", ",,,", "Bearer realm=\"x\"", "Digest", "Digest realm=\"a\"", "Digest nonce=\"n\"",
            "Digest realm=\"a\", nonce=\"\"", "Digest realm=\"a\", nonce=\"n\", algorithm=SHA-512-256",
            "Digest realm=\"a\", nonce=\"n\", qop=\"auth-int\"", "Digest realm=\"a\", nonce=\"n\", nonce=\"m\"",
            "Digest realm=\"a\", realm=\"b\", nonce=\"n\"", "Digest realm=\"a, nonce=\"n\"", "Digest realm=\"a\\",
            "Digest realm=\"a\" nonce=\"n\"", "Basic realm=\"a\u{1}\"", "Basic realm=\"never ended", "Basic=realm",
            "Basic realm=", "\"Basic\" realm=\"a\"", "Basic realm=\"a\"; x", "NTLM", "Negotiate",
        ])
    func refuses(value: String) {
        #expect(AuthenticationOffer.offers(in: head(value)).isEmpty)
    }

    @Test("A mistake ends what is read of its field, not what was before it or in another")
    func mistakes() {
        let offers = AuthenticationOffer.offers(
            in: head("Basic realm=\"a\", Digest realm=\"x\"y, Basic realm=\"hidden\"", "Basic realm=\"b\""))
        #expect(offers.map(\.realm) == ["a", "b"])
    }

    @Test("A flood of schemes, parameters or text is bounded")
    func bounds() {
        let schemes = (0..<1000).map { "Basic realm=\"\($0)\"" }
        #expect(
            AuthenticationOffer.offers(in: head(schemes.prefix(100).joined(separator: ", "))).count
                == PolicyNumbers.authenticationOffersMax)
        let fields = TransportHead(
            status: 401, headers: schemes.map { HeaderField(name: "WWW-Authenticate", value: $0) })
        #expect(AuthenticationOffer.offers(in: fields).count == PolicyNumbers.authenticationOffersMax)
        let parameters = (0..<100).map { "p\($0)=1" }.joined(separator: ",")
        #expect(AuthenticationOffer.offers(in: head("Basic " + parameters)).isEmpty)
        let long = String(repeating: "x", count: PolicyNumbers.realmMax + 1)
        #expect(AuthenticationOffer.offers(in: head("Basic realm=\"\(long)\"")).isEmpty)
        let endless = String(repeating: "x", count: PolicyNumbers.authenticateFieldMax)
        #expect(AuthenticationOffer.offers(in: head("Basic realm=\"a\", x=\"\(endless)\"")).isEmpty)
        #expect(AuthenticationOffer.names(in: head("Bearer realm=\"x\", NTLM")) == "Bearer, NTLM")
    }

    @Test("Random bytes never do worse than nothing", arguments: 1...20 as ClosedRange<UInt64>)
    func fuzz(seed: UInt64) {
        var random = SplitMix(seed: seed)
        let original = Array(
            "Basic realm=\"a\\\"b\", Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256-sess, Negotiate a=="
                .utf8)
        for _ in 0..<300 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                if Bool.random(using: &random) {
                    bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                } else {
                    bytes.remove(at: place)
                }
            }
            let found = AuthenticationOffer.offers(in: head(String(decoding: bytes, as: UTF8.self)))
            #expect(found.count <= PolicyNumbers.authenticationOffersMax)
        }
    }
}

@Suite("What is sent to a server that asks")
struct AuthorizationFieldTests {
    @Test(
        "The hashes are those of the standards",
        arguments: [
            (
                "", "d41d8cd98f00b204e9800998ecf8427e",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            ),
            (
                "abc", "900150983cd24fb0d6963f7d28e17f72",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "8215ef0796a20bcaaae116d3876c664a",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ])
    func hashes(text: String, md5: String, sha256: String) {
        #expect(DigestHash.md5.hexadecimal(text) == md5)
        #expect(DigestHash.sha256.hexadecimal(text) == sha256)
    }

    @Test("Texts of every length around a block are padded right")
    func padding() {
        // Hashes of hashes: one wrong length changes the last.
        var chain = ["", ""]
        for count in 0...200 {
            let text = String(repeating: "a", count: count)
            chain = [DigestHash.md5.hexadecimal(chain[0] + text), DigestHash.sha256.hexadecimal(chain[1] + text)]
        }
        #expect(
            chain == [
                "7e13fc896642bf325eaf55c02e1b4f48", "f556642dd0a93450ce75b8c863d29b6585f602ffccb708f4a206aa7f82407ab6",
            ])
    }

    @Test("Basic is name and password in Base64")
    func basic() {
        #expect(
            AuthorizationField.basic(Credential(user: "Aladdin", password: "open sesame"))
                == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        #expect(AuthorizationField.basic(Credential(user: "test", password: "123£")) == "Basic dGVzdDoxMjPCow==")
        #expect(AuthorizationField.basic(Credential(user: "", password: "")) == "Basic Og==")
    }

    /// The one offer of a field.
    private func offer(_ value: String) throws -> (realm: String, digest: AuthenticationOffer.Digest) {
        let offer = try #require(AuthenticationOffer.offers(in: head("Digest " + value)).first)
        return (offer.realm, try #require(offer.digest))
    }

    private func parameter(_ name: String, of field: String) -> String? {
        field.dropFirst("Digest ".count).split(separator: ", ").first { $0.hasPrefix(name + "=") }
            .map { String($0.dropFirst(name.count + 1).filter { $0 != "\"" }) }
    }

    @Test(
        "Digests are those of the examples in RFC 2617 and RFC 7616",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func digest(algorithm: String, response: String) throws {
        let (realm, digest) = try offer(
            """
            realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
            """)
        let field = AuthorizationField.digest(
            Credential(user: "Mufasa", password: "Circle of Life"), realm: realm, digest,
            .init(
                method: "GET", target: "/dir/index.html",
                clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", count: 1))
        #expect(parameter("response", of: field) == response)
        #expect(parameter("nc", of: field) == "00000001" && parameter("qop", of: field) == "auth")
        #expect(parameter("opaque", of: field) == "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS")
    }

    @Test("The older form without qop, the session form and hashed names")
    func forms() throws {
        let credential = Credential(user: "Mufasa", password: "Circle Of Life")
        let request = AuthorizationField.DigestRequest(
            method: "GET", target: "/dir/index.html", clientNonce: "0a4f113b", count: 1)
        let text = "realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\""
        let (realm, modern) = try offer(text + ", qop=auth")
        let new = AuthorizationField.digest(credential, realm: realm, modern, request)
        #expect(parameter("response", of: new) == "6629fae49393a05397450978507c4ef1")
        let old = AuthorizationField.digest(credential, realm: realm, try offer(text).digest, request)
        #expect(parameter("response", of: old) == "670fd8c2df070c60b045671b8b24ff02")
        #expect(parameter("nc", of: old) == nil && parameter("cnonce", of: old) == nil)
        let hashed = AuthorizationField.digest(
            credential, realm: realm, try offer(text + ", qop=auth, userhash=true").digest, request)
        #expect(parameter("username", of: hashed) == DigestHash.md5.hexadecimal("Mufasa:testrealm@host.com"))
        #expect(parameter("userhash", of: hashed) == "true")
        let session = AuthorizationField.digest(
            credential, realm: realm, try offer(text + ", qop=auth, algorithm=MD5-sess").digest, request)
        let secret = DigestHash.md5.hexadecimal(
            DigestHash.md5.hexadecimal("Mufasa:testrealm@host.com:Circle Of Life")
                + ":dcd98b7102dd2f0e8b11d0f600bfb0c093:0a4f113b")
        let asked = DigestHash.md5.hexadecimal("GET:/dir/index.html")
        #expect(
            parameter("response", of: session)
                == DigestHash.md5.hexadecimal(
                    "\(secret):dcd98b7102dd2f0e8b11d0f600bfb0c093:00000001:0a4f113b:auth:\(asked)"))
    }

    @Test("No name and no server text breaks out of its quotes", arguments: ["a\r\nX: y", "a\"b\\c", "a\u{0}b", "ä b"])
    func injection(text: String) throws {
        let (realm, digest) = try offer("realm=\"a \\\" b \\\\\", nonce=\"n\\\"\", opaque=\"\\\\\", qop=auth")
        let field = AuthorizationField.digest(
            Credential(user: text, password: text), realm: realm, digest,
            .init(method: "GET", target: "/\"", clientNonce: "0", count: .max))
        #expect(field.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        #expect(field.contains("realm=\"a \\\" b \\\\\", nonce=\"n\\\"\", uri=\"/\\\"\""))
        #expect(field.contains("nc=ffffffff"))
        #expect(!AuthorizationField.basic(Credential(user: text, password: text)).contains("\n"))
    }

    @Test("Whatever prints a credential prints nothing of it")
    func silence() {
        let credential = Credential(user: "somebody", password: "secret")
        let space = ProtectionSpace(scheme: .https, host: "a.example", port: 443, realm: "r", method: .basic)
        let entry = SpaceCredential(space: space, credential: credential)
        let disposition = ChallengeDisposition.useCredential(credential, .session)
        var dumped = ""
        dump(entry, to: &dumped)
        for text in ["\(credential)", "\(entry)", String(reflecting: entry), "\(disposition)", dumped] {
            #expect(!text.contains("secret") && !text.contains("somebody"), "\(text)")
        }
    }
}
