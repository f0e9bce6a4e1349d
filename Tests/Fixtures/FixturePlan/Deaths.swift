// How the sample extension dies at a chosen moment.
package import Foundation
internal import Glibc

extension FixturePlan {
    /// Ends this process where the plan says so, once in the life of a container: by a trap, since the first process of a
    /// namespace cannot be killed from inside.
    package func die(at death: Death, in container: URL) {
        if takes(death, in: container) { fatalError("the plan says so") }
    }

    /// The same from another thread while the caller goes on: around its return, sometimes before and sometimes after the
    /// answer has left the process.
    package func dieSoon(at death: Death, in container: URL) {
        guard takes(death, in: container) else { return }
        Thread.detachNewThread { fatalError("the plan says so") }
    }

    /// The mark is on the disk before the process dies.
    private func takes(_ death: Death, in container: URL) -> Bool {
        guard dies.contains(death) else { return false }
        let mark = open(
            container.appendingPathComponent("died " + death.rawValue).path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        guard mark >= 0 else { return false }
        close(mark)
        return true
    }
}
