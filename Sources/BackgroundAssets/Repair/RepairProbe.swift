// Whether the repairs are in effect, found out by trying.

internal import AssetsOS
internal import CRepair
internal import Foundation

/// Finds out whether a call of Foundation's functions reaches ours.
///
/// The repair library is loaded by `backgroundassets launch` and for extensions. It can do nothing for a program that
/// was started in another way, or that carries Foundation in itself.
enum RepairProbe {
    /// No file has such a name, so Foundation itself refuses it without touching anything.
    private static let question = URL(string: "backgroundassets-repair:probe")
    /// The same for reading, which other schemes would take to the network.
    private static let unread = URL(fileURLWithPath: "/dev/null/backgroundassets-repair", isDirectory: false)
    /// What reading it gives where the reader is ours.
    static let readAnswer = Data("ours".utf8)

    /// Whether replacing that item is meant as the question.
    static func answers(_ url: URL) -> Bool { url.scheme == "backgroundassets-repair" }
    /// Whether reading that file is.
    static func answers(reading url: URL) -> Bool { url == unread }

    /// Asked once: nothing changes it while the process runs.
    static let isActive: Bool = {
        guard crepair_has_joined(), let question else { return false }
        let answer = try? FileManager.default.replaceItemAt(
            question, withItemAt: question, backupItemName: nil, options: [])
        return answer != nil && (try? Data(contentsOf: unread, options: .mappedIfSafe)) == readAnswer
    }()

    private static let warned = Guarded(false)

    /// To be called when the process begins to use the framework: warns where the repair library was loaded in vain.
    static func checkAtStart(environment: [String: String]) {
        guard environment["LD_PRELOAD"]?.contains("libFoundationRepair.so") == true else { return }
        warnOnce()
    }

    /// The same for an extension, to be called when an answer is on its way: it takes a moment, for which nobody should
    /// have to wait. Only the first call looks.
    static func checkAtAnswer() { _ = checkedAtAnswer }

    private static let checkedAtAnswer: Void = checkAtStart(environment: ProcessEnvironment.current)

    /// To be called at a finished download: from now on the program handles files.
    static func checkAtFinish() { warnOnce() }

    private static func warnOnce() {
        guard !isActive else { return }
        let isFirst = warned.withLock { warned in
            defer { warned = true }
            return !warned
        }
        guard isFirst else { return }
        Diagnostics.warn(
            "Foundation is not repaired in this process: FileManager.replaceItemAt can lose the new file, .mappedIfSafe "
                + "reads, and UserDefaults of an app group are not shared; start the app with 'backgroundassets launch' "
                + "and link Foundation dynamically")
    }
}
