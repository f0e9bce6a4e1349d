// Everything `backgroundassets` understands: parser, help, man page and completion are made from this table.
internal import AssetsModel
package import CommandLineKit

extension AssetsTool {
    package static let table = Tool(
        name: "backgroundassets",
        version: version,
        summary: "Install apps with their assets, launch them, and see what the asset service does",
        description: [
            "backgroundassets talks to backgroundassetsd, the service that downloads the assets of installed apps. "
                + "The service is started when it does not run yet.",
            "Data goes to standard output, talk and progress to standard error. With --json every value is one line "
                + "of JSON on standard output, and a failure one line of JSON on standard error with its code, reason "
                + "and remedy.",
        ],
        verbs: [install, launch, apps, downloads, why, journal, `extension`, uninstall, settings, doctor, serve],
        options: [
            Option(
                "device", "The device to talk to: the folder that holds it. Without it, the user's own device.",
                value: "folder", kind: .folder),
            Option("json", "Print data as JSON, one object a line."),
        ],
        exitStatuses: ErrorTable.exitStatuses,
        environment: [
            Remark("BACKGROUNDASSETS_DEVICE", "The device to talk to where --device is not given."),
            Remark("XDG_DATA_HOME", "The user's own device is the folder backgroundassets in it."),
            Remark("XDG_RUNTIME_DIR", "Holds the socket of the user's own device."),
        ],
        files: [
            Remark("~/.local/share/backgroundassets", "The user's own device: apps, their containers, the journal.")
        ],
        seeAlso: ["systemctl(1)", "journalctl(1)"])

    private static let install = Verb(
        "install", "Install an app and the assets it cannot do without",
        arguments: [
            Argument("source", "An app bundle's folder, an archive of it, or an https URL of one.", kind: .file)
        ],
        options: [Option("sideload", "Let the app be launched at once, before its essential assets have arrived.")],
        details: [
            "Shows one progress bar over everything: fetching the app, unpacking it, its manifest, asking its "
                + "extension, and its essential assets. The app can be launched when the command ends. Other assets "
                + "go on arriving in the background.",
            "Ctrl-C cancels the installation and leaves nothing of it. Should the service end meanwhile, it is "
                + "started again and the installation goes on where it was.",
        ],
        examples: [
            Remark("backgroundassets install Sample.app", "Install a bundle from this folder."),
            Remark("backgroundassets install https://example.com/Sample.tar.zst", "Install a published archive."),
        ])

    private static let launch = Verb(
        "launch", "Launch an installed app",
        arguments: [bundleIdentifier(.required), Argument("argument", "Passed to the app.", count: .rest)],
        details: [
            "Asks the launch gate first: an app whose essential assets are still arriving is not started, and the "
                + "command says what would release it. Otherwise the app takes the place of this command."
        ],
        examples: [Remark("backgroundassets launch com.example.sample -- --level 3", "Launch with arguments.")])

    private static let apps = Verb("apps", "List the installed apps")

    private static let downloads = Verb(
        "downloads", "List queued, running and unhandled downloads", arguments: [bundleIdentifier(.optional)])

    private static let why = Verb(
        "why", "Say what holds an app or one of its downloads, and what would release it",
        arguments: [
            bundleIdentifier(.required),
            Argument("download", "Identifier or unique identifier of one download.", count: .optional),
        ],
        details: [
            "Names the one rule that holds each thing now, and behind it what would release it, with a time where it is a "
                + "matter of time: the launch gate, the extension and its runtime of the day, exclusive control with who "
                + "has it and who waits, every download that waits and every message that nobody has handled, messages "
                + "that were given up with their kept files, and the next periodic check. Where nothing is held, one "
                + "line says so.",
            "Its words are those of the journal, which tells how it came to that.",
        ],
        examples: [
            Remark("backgroundassets why com.example.sample", "Say what everything of an app waits for."),
            Remark("backgroundassets why com.example.sample level-3.pack", "Say it of one download."),
        ])

    private static let journal = Verb(
        "journal", "Show what the service did and why",
        arguments: [bundleIdentifier(.optional)],
        options: [
            Option("follow", "Go on with what happens from now on, until Ctrl-C."),
            Option(
                "after", "Only entries after this number.", value: "number", kind: .number(0...Int64.max)),
        ],
        examples: [Remark("backgroundassets journal com.example.sample --follow", "Watch one app.")])

    private static let `extension` = Verb(
        "extension", "Show what an app's extension may use and what it used",
        arguments: [bundleIdentifier(.required)],
        details: [
            "Its state, what it used of its runtime of the past day, and its last runs, the last first: the entry points "
                + "that were called, the runtime that counted, and the most memory of its own.",
            "Runtime counts while an entry point runs, and while the extension has or waits for exclusive control. Memory "
                + "is what no file holds: pages that it shares with a file, as of a manifest read with .mappedIfSafe, are "
                + "free.",
            "Warnings name limits that a run came close to: memory or runtime from half of the limit on, size where "
                + "the app's containers hold more than BAMaxInstallSize and BAEssentialMaxInstallSize declare.",
        ],
        examples: [Remark("backgroundassets extension com.example.sample", "See how close it comes to its limits.")])

    private static let uninstall = Verb(
        "uninstall", "Remove an app with its containers and downloads", arguments: [bundleIdentifier(.required)])

    private static let settings = Verb(
        "settings", "Show the device's settings, or change one",
        arguments: [
            Argument(
                "setting", "What to show or change.", kind: .choice(DeviceSettings.Name.allCases.map(\.rawValue)),
                count: .optional),
            Argument("value", "What it shall be.", count: .optional),
        ],
        details: [
            "developer-mode, on or off: admits unsigned bundles, programs that only declare which app they are, and "
                + "servers with a certificate of the development authority that 'serve' uses. Leave it off otherwise.",
            "proxy: the URL of a proxy (http, https, socks5 or socks5h), 'none', or 'environment' for the variables "
                + "https_proxy, all_proxy and no_proxy of whoever starts the service, which is the default.",
            "patience: how long a background download is tried without receiving a byte, such as 15min or 7d; 24h is "
                + "the default.",
            "free-space: what background downloads leave free on the disk, such as 2GiB; others go down to half of it. "
                + "The default is a twentieth, at least 1 GiB, at most 10 GiB and at most a quarter of the disk.",
            "background-rate: bytes a second that all background downloads together receive at most, such as 500KB or "
                + "2MiB, at least 64KiB; 'default' for no limit. Whoever waits for a download is not held up by it.",
        ],
        examples: [
            Remark("backgroundassets settings developer-mode on", "Turn Developer Mode on."),
            Remark("backgroundassets settings proxy http://proxy.example.com:3128", "Use a proxy."),
        ])

    private static let doctor = Verb(
        "doctor", "Say what this machine lacks",
        options: [Option("sandbox", "The sandbox of extensions, layer by layer; what is also said without this.")],
        details: [
            "A layer that is missing makes extensions less closed off than they are meant to be; what that means is said "
                + "in a line each. The exit status is 1 where a layer is missing."
        ],
        examples: [Remark("backgroundassets doctor --sandbox", "See what holds extensions on this machine.")])

    private static let serve = Verb(
        "serve", "Serve a folder over https for development",
        arguments: [Argument("directory", "The folder to serve.", kind: .folder, count: .optional)],
        options: [
            Option(
                "port", "The port to listen on; without it any free one.", value: "number", kind: .number(0...65535)),
            Option("host", "The name in the certificate and in the printed address.", value: "name"),
            Option(
                "fault", "Make answers fail in a chosen way; may be given more than once.", value: "rule",
                repeats: true),
            Option("http", "Serve without encryption."),
            Option("list-faults", "List the faults that there are, and serve nothing."),
        ],
        details: [
            "Prints the address and the certificate authority's file, then every request, until Ctrl-C. A device in "
                + "Developer Mode trusts that authority. It can speak for localhost, names below .localhost and .test, "
                + "127.0.0.1 and ::1.",
            "A fault rule is a path pattern, a colon and a fault of the list that --list-faults prints, with its value "
                + "behind @: a status such as 503 (or 503@5 with Retry-After), close@BYTES, rate@BYTES a second, "
                + "noranges. An xN at the end limits it to the first N requests. BYTES takes units such as 64KiB or "
                + "5MB. The pattern of a fault of TLS is matched against the host that the client names.",
        ],
        examples: [
            Remark("backgroundassets serve assets --port 8443", "Serve the folder assets."),
            Remark(
                "backgroundassets serve assets --fault 'video.mp4:503x2' --fault '*:rate@5MiB'",
                "Refuse a file twice, and be slow."),
        ])

    private static func bundleIdentifier(_ count: Argument.Count) -> Argument {
        Argument(
            "bundle id",
            count == .required
                ? "CFBundleIdentifier of the app." : "CFBundleIdentifier of an app; without it, all apps.",
            count: count)
    }
}
