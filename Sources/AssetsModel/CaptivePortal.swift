// Networks that answer in place of the server until somebody has signed in. docs/resume.md has the whole definition.

/// What gives a sign-in page away. Nothing here is certain by itself: a page counts only where the answer also breaks
/// what was promised of the file.
package enum CaptivePortal {
    /// How a network says outright that one must sign in: RFC 6585.
    package static let status = 511

    /// Kinds of files that no web page is. A server that sends a page for one of them has not sent the file.
    private static let fileSuffixes = words(
        """
        7z aac apk astc avif basis bin bmp br bundle bz2 csv dat db dds deb dmg exr fbx flac gguf gif glb gltf gz hdr heic
        img iso jpeg jpg json ktx ktx2 lz4 m4a m4v mkv mlmodel mov mp3 mp4 obj ogg onnx opus otf pack pak pck pdf plist png
        rpm safetensors so sqlite svg tar tbz2 tgz tif tiff ttf txz tzst usdz wasm wav webm webp woff woff2 xz zip zst
        """)
    /// What pages are called, and programs that make them.
    private static let pageSuffixes = words(
        "asp aspx cfm cgi do htm html jsp jspx mhtml php phtml shtml xht xhtml")
    private static let loginWords = words(
        "captive captiveportal guest hotspot login logon portal signin sign-in splash welcome wifi wlan")

    private static func words(_ text: String) -> Set<String> {
        Set(text.split { $0 == " " || $0 == "\n" }.map(String.init))
    }

    /// What the file of a URL can be, by its name.
    package enum Kind: Hashable, Sendable {
        case page
        case file
        case unknown
    }

    package static func kind(of address: WebAddress) -> Kind {
        let suffix = WebAddress.suffix(of: address.path)
        if pageSuffixes.contains(suffix) { return .page }
        return fileSuffixes.contains(suffix) ? .file : .unknown
    }

    package static func saysPage(_ head: TransportHead) -> Bool {
        let type = ContentFields.mediaType(head)
        return type == "text/html" || type == "application/xhtml+xml"
    }

    /// Whether a body that begins so is a web page. What the server calls HTML need only begin with a tag.
    package static func isPage(_ beginning: [UInt8], saysPage: Bool) -> Bool {
        var text = beginning[...]
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
        text = text.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        let lower = text.map(ASCIIText.lower)
        if lower.starts(with: Array("<!doctype html".utf8)) || lower.starts(with: Array("<html".utf8)) { return true }
        guard saysPage, lower.first == UInt8(ascii: "<"), lower.count > 1 else { return false }
        return ASCIIText.isLetter(lower[1]) || lower[1] == UInt8(ascii: "!") || lower[1] == UInt8(ascii: "?")
    }

    /// Whether a temporary redirect that may not be followed leads to a page for signing in: on another host, and one of
    /// its names says so or it takes along where it came from.
    package static func isLogin(_ target: WebAddress, insteadOf asked: WebAddress, status: Int) -> Bool {
        guard [302, 303, 307].contains(status), target.host != asked.host else { return false }
        let query = target.query.lowercased()
        if query.contains(asked.host) { return true }
        let names = target.host.split(separator: ".").dropLast(1) + target.path.lowercased().split(separator: "/")
        return names.contains { name in loginWords.contains(String(name.prefix { $0 != "." && $0 != "_" })) }
    }
}
