// `downloads`, `journal`, `settings`.
internal import AssetsWire
internal import CommandLineKit

extension AssetsTool {
    static func downloads(_ context: Context) throws(Failure) -> Int32 {
        var table = Table([
            .init("APP"), .init("IDENTIFIER"), .init("CLASS"), .init("STATE"), .init("RECEIVED", .right),
            .init("SIZE", .right), .init("TRIES", .right), .init("NEXT TRY"), .init("REASON"),
        ])
        let app = context.values.argument("bundle id") ?? ""
        try context.service.stream(DeviceInterface.Downloads.self, .init(app: app)) { page in
            for download in page.downloads {
                if context.console.printsJSON {
                    context.console.data(json: download)
                } else {
                    table.add([
                        download.app, download.identifier,
                        download.essential ? "essential" : download.transferClass, download.state,
                        Format.bytes(download.received),
                        download.expected > 0 ? Format.bytes(download.expected) : "-", String(download.attempts),
                        download.nextTry > 0 ? Format.date(download.nextTry) : "-",
                        sentence(download.reason, download.detail),
                    ])
                }
            }
        }
        print(table, ifEmpty: "there are no downloads", context)
        return ExitStatus.done
    }

    static func journal(_ context: Context) throws(Failure) -> Int32 {
        let parameters = DeviceInterface.Journal.Parameters(
            app: context.values.argument("bundle id") ?? "", after: context.values.number("after") ?? 0,
            follow: context.values.has("follow"))
        try context.service.stream(DeviceInterface.Journal.self, parameters) { page in
            for entry in page.entries {
                if context.console.printsJSON {
                    context.console.data(json: entry)
                } else {
                    context.console.data(line(of: entry))
                }
            }
        }
        return ExitStatus.done
    }

    /// Lines of a stream cannot wait for each other's widths: number, time and event have places of fixed width.
    private static func line(of entry: DeviceInterface.JournalEntry) -> String {
        let number = String(entry.number)
        let event = entry.event.count < 19 ? entry.event + spaces(19 - entry.event.count) : entry.event
        let parts = [
            spaces(6 - number.count) + number, Format.date(entry.time), event, entry.app, entry.download,
            sentence(entry.reason, entry.detail),
        ]
        return TerminalText.printable(parts.filter { !$0.isEmpty }.joined(separator: "  "))
    }

    private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }

    private static func sentence(_ reason: String, _ detail: String) -> String {
        // The journal's word for "no reason" says nothing to people.
        [reason == "none" ? "" : reason, detail].filter { !$0.isEmpty }.joined(separator: ": ")
    }

    static func settings(_ context: Context) throws(Failure) -> Int32 {
        let name = context.values.argument("setting")
        if let name, let value = context.values.argument("value") {
            _ = try context.service.call(DeviceInterface.SetSetting.self, .init(name: name, value: value))
        }
        let device = try context.service.call(DeviceInterface.Describe.self, .init())
        if context.console.printsJSON {
            context.console.data(json: device)
            return ExitStatus.done
        }
        var table = Table([.init("SETTING"), .init("VALUE")])
        for setting in device.settings where name == nil || name == setting.name {
            table.add([setting.name, setting.value])
        }
        if name == nil {
            table.add(["device", device.device])
            table.add(["folder", device.root])
            table.add(["service", "\(device.version), process \(device.process)"])
        }
        context.console.data(table.lines().joined(separator: "\n"))
        return ExitStatus.done
    }
}
