// Starts one downloader extension: reads the description of its box, enters the box and becomes the extension.
//
// usage: extension-launcher, by the service only
//
// Descriptors 0-2 are /dev/null and the journal pipe, 3-5 the entry points, requests and events of the extension, 6 the
// lock of its container and 7 the description; the service closed all others. What cannot be done as described is said on
// standard error, and the extension does not run: nothing is left out by itself.
import AssetsSandbox
import CLinux
import Glibc

/// Exit statuses of the launcher itself, above those that extensions use.
enum LaunchFailure: Int32 {
    case usage = 64
    case orphaned = 121
    case confinement = 122
    case exec = 126
}

func fail(_ failure: LaunchFailure, _ text: String) -> Never {
    let line = "extension-launcher: \(text)\n"
    _ = line.withCString { write(2, $0, strlen($0)) }
    exit(failure.rawValue)
}

func reason() -> String { String(cString: strerror(errno)) }

/// Ends the launcher where a call answers -1.
@discardableResult
func must(_ what: @autoclosure () -> String, _ result: Int32) -> Int32 {
    if result == -1 { fail(.confinement, "\(what()): \(reason())") }
    return result
}

/// The description, to its end.
func readDescription() -> SandboxDescription {
    var bytes = [UInt8](repeating: 0, count: SandboxDescription.bytesMax)
    var count = 0
    while count < bytes.count {
        let got = bytes.withUnsafeMutableBytes {
            read(SandboxDescriptor.description, $0.baseAddress?.advanced(by: count), $0.count - count)
        }
        if got == -1 && errno == EINTR { continue }
        guard got > 0 else { break }
        count += got
    }
    close(SandboxDescriptor.description)
    guard let description = SandboxDescription(bytes: Array(bytes.prefix(count))) else {
        fail(.usage, "started by the asset service only")
    }
    return description
}

/// The extension dies with the service's thread that started it, also while it is stopped.
func bindLife(to service: Int32) {
    must("parent death signal", clinux_set_parent_death_signal(SIGKILL))
    // The service may have died before the signal was asked for. A process namespace of its own knows no parent; but then
    // the service's end of the entry points is closed.
    let parent = getppid()
    guard parent == service || parent == 0, clinux_is_hung_up(SandboxDescriptor.entryPoints) == 0 else {
        fail(.orphaned, "the service is gone")
    }
}

/// The process itself: what it may use, and how urgent it is.
func limit(_ description: SandboxDescription) {
    for limit in description.limits {
        must("limit \(limit.resource)", clinux_set_limit(limit.resource, limit.value))
    }
    if description.priority.nice != 0 {
        must("nice", setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, description.priority.nice))
    }
    if let level = description.priority.disk { must("disk priority", clinux_set_disk_level(level)) }
}

/// Files, TCP, signals and abstract sockets.
func enterLandlock(_ description: SandboxDescription) {
    let abilities = description.landlock
    let ruleset = must(
        "Landlock", clinux_landlock_create(abilities.files.rawValue, abilities.network, abilities.scopes))
    for grant in description.grants {
        guard let rights = grant.rights(handled: abilities.files) else { continue }
        let place = must(grant.path, clinux_open_place(grant.path))
        must("Landlock for \(grant.path)", clinux_landlock_allow(ruleset, place, rights.rawValue))
        if grant.use == .process { keep(place) } else { close(place) }
    }
    must("Landlock", clinux_landlock_restrict(ruleset, 0))
    close(ruleset)
}

/// Leaves a folder of /proc open, without any right, for as long as the process lives. When memory is short the kernel
/// forgets such a folder that nobody has open, and makes another one when it is looked for, of which no rule knows.
func keep(_ folder: Int32) { must("descriptor \(folder)", fcntl(folder, F_SETFD, 0)) }

/// System calls. The last wall, because the others are made of calls that it refuses.
func enterFilter(_ description: SandboxDescription) {
    let filter = FilterProgram.replacing(
        SystemCallRule.ownProcess, with: UInt32(bitPattern: getpid()), in: description.filter)
    must("call filter", filter.withUnsafeBytes { clinux_seccomp_filter($0.baseAddress, $0.count, 0) })
}

func become(_ description: SandboxDescription) -> Never {
    let arguments = CStrings([description.program] + description.arguments)
    let environment = CStrings(description.environment)
    if description.layers.contains(.seccomp) { enterFilter(description) }
    if description.isTrial { exit(0) }
    execve(description.program, arguments.pointers, environment.pointers)
    fail(.exec, "\(description.program): \(reason())")
}

let description = readDescription()
limit(description)
if description.layers.contains(.namespaces) { EmptyRoot(of: description).enter() }
must("capabilities", clinux_drop_capabilities())
must("no-new-privs", clinux_no_new_privileges())
must(description.folder, chdir(description.folder))
bindLife(to: description.service)
if description.layers.contains(.landlock) { enterLandlock(description) }
become(description)
