// The files of Interfaces/, word for word, so that the service can describe itself wherever it is installed.
// A test compares them.

/// Texts of the interfaces by their names.
package enum InterfaceTexts {
    /// The text that `org.varlink.service.GetInterfaceDescription` answers; nil for a name not ours.
    package static func text(of interface: String) -> String? {
        switch interface {
        case DeviceInterface.interface: device
        case ManagerInterface.interface: manager
        case ExtensionInterface.interface: `extension`
        case VarlinkService.interface: service
        default: nil
        }
    }

    private static let device = #"""
        # The device: what its user, the command line and desktop tools ask for.
        # Any process of the device's user may call it.
        interface org.backgroundassets.Device

        # An app on this device. state is "installing" or "ready".
        type App (
            bundle_id: string,
            name: string,
            version: string,
            build: string,
            state: string,
            launchable: bool,
            # Why it cannot be launched; empty when it can.
            reason: string,
            # Path of the installed bundle; empty until it is unpacked.
            path: string,
            # Calendar seconds since 1970; 0 where it has not happened.
            installed_at: float,
            launched_at: float
        )

        # One step of an installation. phase is "archive", "unpacking", "manifest", "asking", "essential", "launchable",
        # "failed" or "cancelled"; the last three end the stream.
        type InstallUpdate (
            # Names the installation; FollowInstall takes it after a lost connection.
            install: string,
            app: string,
            phase: string,
            # 0 to 1, never going back.
            fraction: float,
            # Bytes of essential assets (and archive and manifest): received and expected.
            received: int,
            expected: int,
            # A sentence for people: what happens, what is waited for, or why it failed.
            detail: string,
            # Error code of a failed installation, 0 otherwise.
            code: int,
            remedy: string
        )

        # A download as the device sees it. state is "waiting", "downloading", "finishing", "finished" or "failed";
        # class is "background", "foreground" or "essential".
        type Download (
            app: string,
            identifier: string,
            unique_identifier: string,
            kind: string,
            url: string,
            group: string,
            essential: bool,
            priority: int,
            class: string,
            state: string,
            received: int,
            expected: int,
            attempts: int,
            # Why it waits or failed; empty otherwise.
            reason: string,
            detail: string,
            # When it is tried next, in calendar seconds since 1970; 0 when that is not a matter of time.
            next_try: float
        )

        # A setting: its value as people may see it.
        type Setting (
            name: string,
            value: string
        )

        # One layer of the sandbox of extensions.
        type SandboxLayer (
            name: string,
            active: bool,
            # What it is made of; why it is missing.
            detail: string,
            # What an extension can do because of what is missing, a sentence each.
            weaker: []string
        )

        type JournalEntry (
            number: int,
            # Calendar seconds since 1970.
            time: float,
            event: string,
            reason: string,
            app: string,
            download: string,
            detail: string
        )

        # How an app's extension may run. state is "absent", "launching", "running", "idle", "suspended" or "ending".
        type ExtensionState (
            state: string,
            # Seconds of a rolling day: used, and those there are.
            runtime_used: float,
            runtime_max: float,
            # Bytes of memory of its own.
            memory_max: int,
            # Why it may not run now; empty where it may.
            reason: string,
            detail: string
        )

        # One process of an extension.
        type ExtensionRun (
            # Calendar seconds since 1970; ended_at is 0 where it has not ended, or nobody saw its end.
            launched_at: float,
            ended_at: float,
            # Entry points that were called.
            calls: int,
            # Seconds that counted.
            runtime: float,
            # Most bytes of memory of its own.
            memory_peak: int,
            # What it came close to: "memory" or "runtime" from half of the limit on, "size" beyond what its app declares.
            warnings: []string,
            # Why it ended; empty where it was no longer needed.
            reason: string,
            detail: string
        )

        # How something of an app stands. subject is "gate", "extension", "control", "check" (the next periodic check), "download",
        # "message" (of a download that has ended, until somebody has handled it) or "kept-file" (of a message that was given up).
        type Standing (
            subject: string,
            # Of a download; empty where it is about none.
            identifier: string,
            unique_identifier: string,
            # Whether something holds it.
            held: bool,
            # The one rule that holds it now; empty where nothing does.
            reason: string,
            detail: string,
            # What releases it, to be read after "released when"; empty where nothing holds it.
            release: string,
            # When it goes on at the latest, in calendar seconds since 1970; 0 when that is not a matter of time.
            latest: float
        )

        # What this service is.
        method Describe() -> (
            device: string,
            root: string,
            version: string,
            process: int,
            developer_mode: bool,
            # All of them.
            settings: []Setting
        )

        # What extensions are closed off with on this machine, found out by trying when the service started.
        method Sandbox() -> (layers: []SandboxLayer)

        # Installs an app from a bundle folder or archive, given as absolute path or https URL. source_kind is "store" or
        # "sideload"; with "sideload" the app is launchable at once. A stream: one update for each step or 1/10 s.
        method Install(source: string, source_kind: string) -> (update: InstallUpdate)

        # Goes on telling of an installation. A stream.
        method FollowInstall(install: string) -> (update: InstallUpdate)

        # Ends an installation and removes what it left.
        method CancelInstall(install: string) -> ()

        method Uninstall(app: string) -> ()

        # Asks the launch gate. Answers the executable to start and the environment it needs, and counts as a launch.
        method Launch(app: string) -> (executable: string, environment: [string]string)

        # A stream of pages.
        method Apps() -> (apps: []App)

        # Downloads of one app, or of all with an empty name. A stream of pages.
        method Downloads(app: string) -> (downloads: []Download)

        # Journal rows after a number, of one app or of all with an empty name. A stream of pages; with follow it goes on.
        method Journal(app: string, after: int, follow: bool) -> (entries: []JournalEntry)

        # Developer Mode only: has the app's extension asked at once as on an occasion: "install", "update" or "periodic". First
        # its manifest is fetched. The answer says that the event was taken; the journal tells what came of it.
        method Simulate(app: string, event: string) -> ()

        # What an app's extension may use, and its last runs, the last first.
        method Extension(app: string) -> (extension: ExtensionState, runs: []ExtensionRun)

        # How an app stands: its gate, extension, exclusive control and periodic checks, and each download that something holds.
        # With a download, its identifier or unique identifier, only that. A stream of pages.
        method Why(app: string, download: string) -> (standings: []Standing)

        # Developer Mode admits unsigned bundles, declared callers and the development certificate authority.
        method SetDeveloperMode(on: bool) -> ()

        # Changes a setting. What its values are is said in the refusal of another one.
        method SetSetting(name: string, value: string) -> ()

        # Whatever was refused or went wrong: a code of the error table, what and why, and what to do next.
        error Refused (code: int, reason: string, remedy: string)

        """#

    private static let manager = #"""
        # The download manager of one app: what the BackgroundAssets module of an app or extension calls.
        # The service knows the app by the caller's executable, by an inherited socket or, in Developer Mode, by Declare.
        interface org.backgroundassets.Manager

        type HeaderField (name: string, value: string)

        # kind is "url" or "manifest". state is that of BADownload.State: -1 failed, 0 created, 1 waiting, 2 downloading,
        # 3 finished. body is base64, sha256 64 hexadecimal digits.
        type Download (
            identifier: string,
            unique_identifier: string,
            url: string,
            method: string,
            headers: []HeaderField,
            body: string,
            group: string,
            essential: bool,
            # Bytes, 0 when unknown.
            size: int,
            priority: int,
            kind: string,
            state: int,
            # What the file must come to, where the app says so.
            sha256: ?string
        )

        # domain is "BAErrorDomain" or "NSURLErrorDomain".
        type Failure (domain: string, code: int, reason: string)

        # A server asks who asks. scheme is "https" or "http", method "basic" or "digest". url is what answered, another than the
        # download's after a redirect; offer is its WWW-Authenticate. previous_failures counts the credentials that the server has
        # refused this download; proposed_user and proposed_password are the last of them.
        type Challenge (
            scheme: string,
            host: string,
            port: int,
            realm: string,
            method: string,
            url: string,
            offer: string,
            previous_failures: int,
            proposed_user: ?string,
            proposed_password: ?string
        )

        # kind is "session" (first, carries the session), "began", "paused", "progress", "challenge", "failed", "finished",
        # "control-granted" or "control-refused". number is 0 unless an Answer is expected, or AnswerChallenge of a challenge.
        type Event (
            kind: string,
            number: int,
            session: ?string,
            download: ?Download,
            # Bytes since the last progress event, so far, and expected (0 when unknown).
            written: ?int,
            total_written: ?int,
            total_expected: ?int,
            failure: ?Failure,
            # Where a finished file lies.
            path: ?string,
            ticket: ?int,
            challenge: ?Challenge
        )

        # Developer Mode only: this connection speaks for that installed app.
        method Declare(app: string) -> ()

        # An app group and the folder of its container: an absolute path.
        type Group (identifier: string, container: string)

        # For whom this connection speaks. role is "app" or "extension"; groups are those of the app, or those that
        # the extension shares with it. root is the device's folder.
        method Identity() -> (app: string, role: string, groups: []Group, root: string)

        # Queues a background download; answers its state.
        method Schedule(download: Download) -> (state: int)

        # Starts a download at once, or promotes the queued or running one of that unique identifier. It stays in the
        # foreground until this connection closes.
        method StartForeground(download: Download) -> (state: int)

        method Cancel(unique_identifier: string) -> ()

        # Everything queued or running for the app. A stream of pages.
        method CurrentDownloads() -> (downloads: []Download)

        # Opens a session. A stream: first the session's name, then what concerns it, until the connection closes.
        method Events() -> (events: []Event)

        # Says whether the process has a delegate: only then its session gets began, paused, progress, challenge,
        # failed and finished. progress false: it has no method for progress, which is then not sent; null is true.
        method SetDelegate(session: string, present: bool, progress: ?bool) -> ()

        # Answers failed or finished events, any number of them at once. not_handled: the delegate has no method for them.
        method Answer(session: string, handled: []int, not_handled: []int) -> ()

        # Answers a challenge event. disposition is "use-credential", "default", "cancel", "reject" (ask for the next protection
        # space) or "not-implemented" (the delegate has no method for it). keep true: other downloads of the app may use the
        # credential once the server has accepted it, as long as the service runs. It is never written.
        method AnswerChallenge(
            session: string,
            number: int,
            disposition: string,
            user: ?string,
            password: ?string,
            keep: bool
        ) -> ()

        # Asks for exclusive control. granted says that nobody held it: then no event follows. Else the grant or refusal comes
        # as event with this ticket. within is in milliseconds: 0 tries once, null waits without limit.
        method AcquireControl(session: string, within: ?int) -> (ticket: int, granted: bool)

        # Gives exclusive control back, or stops waiting for it.
        method ReleaseControl(session: string, ticket: int) -> ()

        # A code of BAErrorCode, what and why, and what to do next.
        error Refused (code: int, reason: string, remedy: string)

        """#

    private static let `extension` = #"""
        # The entry points of a downloader extension. The service calls; the extension's process answers, on a socket it
        # inherited. One call at a time.
        interface org.backgroundassets.Extension

        type HeaderField (name: string, value: string)

        # As in org.backgroundassets.Manager.
        type Download (
            identifier: string,
            unique_identifier: string,
            url: string,
            method: string,
            headers: []HeaderField,
            body: string,
            group: string,
            essential: bool,
            size: int,
            priority: int,
            kind: string,
            state: int,
            # What the file must come to, where the app says so.
            sha256: ?string
        )

        type Failure (domain: string, code: int, reason: string)

        # As in org.backgroundassets.Manager.
        type Challenge (
            scheme: string,
            host: string,
            port: int,
            realm: string,
            method: string,
            url: string,
            offer: string,
            previous_failures: int,
            proposed_user: ?string,
            proposed_password: ?string
        )

        # downloads(for:manifestURL:extensionInfo:). request is the value of BAContentRequest; the remaining sizes are null
        # when no restriction holds. A stream of pages; implemented false: the extension has no such method.
        method ContentRequest(
            request: int,
            manifest: string,
            remaining: ?int,
            essential_remaining: ?int
        ) -> (implemented: bool, downloads: []Download)

        # The entry point of 2022 for that occasion: applicationDidInstall(metadata:), applicationDidUpdate(metadata:) or
        # checkForUpdates(metadata:). Called when ContentRequest was not implemented. While it runs the extension may schedule.
        method ApplicationEvent(
            request: int,
            remaining: ?int,
            essential_remaining: ?int
        ) -> (implemented: bool)

        # The reply comes when the callback has returned and everything it started for the file has ended.
        method DownloadFailed(download: Download, failure: Failure) -> (implemented: bool)
        method DownloadFinished(download: Download, path: string) -> (implemented: bool)

        # disposition, user, password and keep as in AnswerChallenge of org.backgroundassets.Manager.
        method Challenged(
            download: Download,
            challenge: Challenge
        ) -> (disposition: string, user: ?string, password: ?string, keep: bool)

        # extensionWillTerminate().
        method WillTerminate() -> ()

        """#

    private static let service = #"""
        # The varlink service interface: every service answers these calls.
        interface org.varlink.service

        # Who made the service, and its interfaces.
        method GetInfo() -> (
            vendor: string,
            product: string,
            version: string,
            url: string,
            interfaces: []string
        )

        # The text of an interface.
        method GetInterfaceDescription(interface: string) -> (description: string)

        # The requested interface was not found.
        error InterfaceNotFound (interface: string)

        # The requested method was not found.
        error MethodNotFound (method: string)

        # The interface defines the requested method, but the service does not implement it.
        error MethodNotImplemented (method: string)

        # One of the passed parameters is invalid.
        error InvalidParameter (parameter: string)

        # The method is a stream: call it with "more".
        error ExpectedMore ()

        """#
}
