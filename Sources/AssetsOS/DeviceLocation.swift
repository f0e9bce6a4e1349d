// Where a device is: one root folder and one socket, found the same way by service, tools and apps.

/// A device's root folder and the socket of its service.
package struct DeviceLocation: Hashable, Sendable {
    /// The environment variable that names a device for a process and its children.
    package static let variable = "BACKGROUNDASSETS_DEVICE"
    private static let socketName = "service.socket"
    private static let folderName = "backgroundassets"

    package var root: String
    package var socketPath: String
    /// What the service holds locked while it serves this device.
    package var lockPath: String { root + "/service.lock" }

    package init(root: String, socketPath: String) {
        self.root = root
        self.socketPath = socketPath
    }

    /// The device named by `device` (a root folder), else by the environment, else the user's own.
    ///
    /// Returns nil when there is neither a name nor a home.
    package init?(device: String? = nil, environment: [String: String], currentFolder: String = "/") {
        let named = device.flatMap { $0.isEmpty ? nil : $0 } ?? ProcessEnvironment.value(Self.variable, in: environment)
        let own = Self.own(environment)
        if let named {
            let root = Self.absolute(named, in: currentFolder)
            // One device has one socket, also where somebody names the user's own by its folder.
            let other = Self(root: root, socketPath: Self.below(root, Self.socketName))
            self = own.flatMap { $0.root == root ? $0 : nil } ?? other
        } else if let own {
            self = own
        } else {
            return nil
        }
    }

    /// The user's own device; nil without a home.
    private static func own(_ environment: [String: String]) -> DeviceLocation? {
        let data: String
        if let folder = absoluteFolder("XDG_DATA_HOME", in: environment) {
            data = folder
        } else if let home = absoluteFolder("HOME", in: environment) {
            data = below(home, ".local/share")
        } else {
            return nil
        }
        let root = below(data, folderName)
        let runtime = absoluteFolder("XDG_RUNTIME_DIR", in: environment)
        let folder = runtime.map { below($0, folderName) } ?? root
        return DeviceLocation(root: root, socketPath: below(folder, socketName))
    }

    /// The XDG rules ignore relative paths.
    private static func absoluteFolder(_ name: String, in environment: [String: String]) -> String? {
        guard let value = environment[name], value.hasPrefix("/") else { return nil }
        return absolute(value, in: "/")
    }

    /// One spelling for one folder: absolute, without doubled or trailing slashes and `.` parts.
    private static func absolute(_ path: String, in folder: String) -> String {
        let whole = path.hasPrefix("/") ? path : folder + "/" + path
        return "/" + whole.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    private static func below(_ folder: String, _ name: String) -> String {
        folder == "/" ? "/" + name : folder + "/" + name
    }
}
