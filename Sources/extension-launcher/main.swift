// Starts one downloader extension: everything that has to hold before the app's own code runs is set here.
//
// usage: extension-launcher <pid of the service> <folder to start in> <executable> [argument...]
//
// Descriptors 0-2 are /dev/null and the journal pipe, 3-5 the entry points, requests and events of the extension; the
// service closed all others. The environment is passed on as it is, but for BACKGROUNDASSETS_PRELOAD: the library that it
// names is loaded into the extension, and not into the launcher.
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

/// The extension dies with the service's thread that started it, also while it is stopped.
func bindLife(toService pid: pid_t) {
    guard clinux_set_parent_death_signal(SIGKILL) == 0 else { fail(.confinement, "parent death signal: \(reason())") }
    // The service may have died before the signal was asked for.
    guard getppid() == pid else { fail(.orphaned, "the service is gone") }
}

/// The box around the app's code, in the order in which its parts have to be closed.
func confine() {
    var noCore = rlimit(rlim_cur: 0, rlim_max: 0)
    guard setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &noCore) == 0 else {
        fail(.confinement, "core limit: \(reason())")
    }
    guard clinux_no_new_privileges() == 0 else { fail(.confinement, "no-new-privs: \(reason())") }
}

/// Has the loader of programs load the library that repairs Foundation.
func preload() {
    guard let library = getenv("BACKGROUNDASSETS_PRELOAD") else { return }
    guard setenv("LD_PRELOAD", library, 1) == 0, unsetenv("BACKGROUNDASSETS_PRELOAD") == 0 else {
        fail(.confinement, "environment: \(reason())")
    }
}

let arguments = CommandLine.arguments
guard arguments.count >= 4, let service = pid_t(arguments[1]) else {
    fail(.usage, "usage: extension-launcher <pid of the service> <folder> <executable> [argument...]")
}
bindLife(toService: service)
guard chdir(arguments[2]) == 0 else { fail(.confinement, "\(arguments[2]): \(reason())") }
confine()
preload()
var argv: [UnsafeMutablePointer<CChar>?] = arguments.dropFirst(3).map { strdup($0) }
argv.append(nil)
execv(arguments[3], argv)
fail(.exec, "\(arguments[3]): \(reason())")
