// Everything `backgroundassets-debug` understands; its options are those of the tool of the same name on other systems.
package import CommandLineKit

extension DebugTool {
    package static let table = Tool(
        action: Verb(
            "backgroundassets-debug",
            "Simulate the events on which the system asks an app's extension what to download",
            options: [
                Option("list-devices", short: "l", "List the devices that there are, with their ids."),
                Option("simulate", short: "s", "Send an event to a device; one of the three below."),
                Option("app-install", "The event: as at the first installation of the app."),
                Option("app-update", "The event: as at an update of the app."),
                Option("app-periodic-check", "The event: as from time to time while the app is not used."),
                Option(
                    "app-bundle-id", short: "b", "CFBundleIdentifier of the app, not of its extension.", value: "id"),
                Option("device-id", short: "d", "The device, as --list-devices prints it.", value: "id"),
                Option("json", "Print data as JSON, one object a line."),
            ],
            details: [
                "Installations are the store's and periodic checks are the device's to decide; with this tool a developer "
                    + "has them now. The device fetches the app's manifest and asks its extension, whether or not the "
                    + "app was ever launched, and the runtime that the extension has left begins anew. What came of it "
                    + "is in the journal: 'backgroundassets journal <bundle id> --follow'.",
                "The device must be in Developer Mode: 'backgroundassets settings developer-mode on'.",
            ],
            examples: [
                Remark("backgroundassets-debug --list-devices", "Which devices there are."),
                Remark(
                    "backgroundassets-debug -s --app-install -b com.example.sample -d <id>",
                    "The extension answers as at an installation."),
            ]),
        version: AssetsTool.version,
        description: [
            "backgroundassets-debug talks to backgroundassetsd, the service that downloads the assets of installed apps. "
                + "It knows the user's own device and the one that BACKGROUNDASSETS_DEVICE names."
        ],
        exitStatuses: ErrorTable.exitStatuses,
        environment: [
            Remark("BACKGROUNDASSETS_DEVICE", "One more device beside the user's own: the folder that holds it.")
        ],
        seeAlso: ["backgroundassets(1)"])
}
