// A handle of a process that is not our child.
import CLinux

/// -1 when there is no such process.
func pidfd(_ process: Int32) -> Int32 { clinux_pidfd_open(process, 0) }
