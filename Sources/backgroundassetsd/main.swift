// backgroundassetsd: the service of one device.
import AssetsService
import Glibc

let usage = """
    usage: backgroundassetsd [--device <folder>] [--idle-exit <seconds>]

    Serves one device: installs apps, fetches their assets, wakes their extensions. Clients start it by themselves; by
    hand it is run to watch it. Without --device it serves the user's own device.

      --device <folder>      serve the device in that folder
      --idle-exit <seconds>  exit when nobody has needed the service for so long; 60 where nothing is said
      --version              print the version
      --help                 print this

    """

func print(_ text: String, to descriptor: Int32) {
    _ = text.withCString { write(descriptor, $0, strlen($0)) }
}

var options = ServiceOptions(device: nil)
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    switch argument {
    case "--device":
        guard let folder = arguments.popFirst(), !folder.isEmpty else {
            print("backgroundassetsd: --device needs a folder\n", to: STDERR_FILENO)
            exit(64)
        }
        options.device = folder
    case "--idle-exit":
        guard let limit = arguments.popFirst().flatMap(ServiceOptions.idleExit) else {
            print("backgroundassetsd: --idle-exit needs seconds, for example 0.5 or 60\n", to: STDERR_FILENO)
            exit(64)
        }
        options.idleExit = limit
    case "--version":
        print(ServiceMain.version + "\n", to: STDOUT_FILENO)
        exit(0)
    case "--help", "-h":
        print(usage, to: STDOUT_FILENO)
        exit(0)
    default:
        print("backgroundassetsd: unknown argument \(argument); see --help\n", to: STDERR_FILENO)
        exit(64)
    }
}
let status = ServiceMain.run(options).rawValue
fflush(nil)
// Threads of pools may be about to end, and libraries that are taken apart by exit() would be gone under them.
_exit(status)
