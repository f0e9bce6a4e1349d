// Signals to others, by every call that sends one, and by descriptors that send one when something happens.
#define _GNU_SOURCE
#include "Families.h"

#include <asm/ioctls.h>
#include <asm/sockios.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

// Ignored by everybody who does not ask for it.
enum { harmless = SIGURG };

static struct escape_verdict by_kill(const struct escape_scene *scene) {
    return escape_result(kill((pid_t)scene->victim, SIGKILL), "kill", "killed it");
}
static struct escape_verdict service(const struct escape_scene *scene) {
    return escape_result(kill((pid_t)scene->service, harmless), "kill", "signalled the service");
}
static struct escape_verdict parent(const struct escape_scene *scene) {
    (void)scene;
    // Outside of its own namespace the parent has the number 0, which would be its own group.
    if (getppid() == 0) return escape_held("sees no parent");
    return escape_result(kill(getppid(), harmless), "kill", "signalled its parent");
}
static struct escape_verdict everybody(const struct escape_scene *scene) {
    (void)scene;
    // The kernel answers 0 also where nobody could be signalled.
    if (kill(-1, harmless) == -1) return escape_denied("kill");
    return escape_tried("signalled everybody");
}
static struct escape_verdict group(const struct escape_scene *scene) {
    return escape_result(kill(-(pid_t)scene->victim, harmless), "kill", "signalled a process group");
}
static struct escape_verdict by_tgkill(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_tgkill, scene->victim, scene->victim, harmless), "tgkill", "signalled it");
}
static struct escape_verdict by_tkill(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_tkill, scene->victim, harmless), "tkill", "signalled it");
}
static siginfo_t queued(void) {
    siginfo_t information;
    memset(&information, 0, sizeof information);
    information.si_code = SI_QUEUE;
    information.si_signo = harmless;
    information.si_pid = getpid();
    information.si_uid = getuid();
    return information;
}
static struct escape_verdict by_queue(const struct escape_scene *scene) {
    siginfo_t information = queued();
    return escape_result(
        syscall(SYS_rt_sigqueueinfo, scene->victim, harmless, &information), "rt_sigqueueinfo", "signalled it");
}
static struct escape_verdict by_thread_queue(const struct escape_scene *scene) {
    siginfo_t information = queued();
    return escape_result(
        syscall(SYS_rt_tgsigqueueinfo, scene->victim, scene->victim, harmless, &information), "rt_tgsigqueueinfo",
        "signalled it");
}
static struct escape_verdict by_handle(const struct escape_scene *scene) {
    int handle = (int)syscall(SYS_pidfd_open, scene->victim, 0);
    if (handle == -1) return escape_denied("pidfd_open");
    return escape_result(syscall(SYS_pidfd_send_signal, handle, harmless, NULL, 0), "pidfd_send_signal", "signalled it");
}

// A pipe that kills whom it is told to when something is written to it.
static struct escape_verdict by_pipe(const struct escape_scene *scene, int is_by_ioctl) {
    int ends[2], owner = (int)scene->victim, on = 1;
    if (pipe2(ends, O_CLOEXEC) == -1) return escape_denied("pipe2");
    if (is_by_ioctl ? ioctl(ends[0], FIOSETOWN, &owner) : fcntl(ends[0], F_SETOWN, owner)) return escape_denied("F_SETOWN");
    if (fcntl(ends[0], F_SETSIG, SIGKILL) == -1) return escape_denied("F_SETSIG");
    if (is_by_ioctl ? ioctl(ends[0], FIOASYNC, &on) : fcntl(ends[0], F_SETFL, O_ASYNC)) return escape_denied("O_ASYNC");
    if (write(ends[1], "x", 1) == -1) return escape_denied("write");
    return escape_tried("wrote to a pipe that kills it");
}
static struct escape_verdict by_owner(const struct escape_scene *scene) { return by_pipe(scene, 0); }
static struct escape_verdict by_owner_ex(const struct escape_scene *scene) {
    int ends[2];
    struct f_owner_ex owner = {F_OWNER_PID, (pid_t)scene->victim};
    if (pipe2(ends, O_CLOEXEC) == -1) return escape_denied("pipe2");
    if (fcntl(ends[0], F_SETOWN_EX, &owner) == -1) return escape_denied("F_SETOWN_EX");
    if (fcntl(ends[0], F_SETSIG, SIGKILL) == -1) return escape_denied("F_SETSIG");
    if (fcntl(ends[0], F_SETFL, O_ASYNC) == -1) return escape_denied("O_ASYNC");
    if (write(ends[1], "x", 1) == -1) return escape_denied("write");
    return escape_tried("wrote to a pipe that kills it");
}
// Sockets of the service are open in the extension: what arrives at one would send the signal.
static struct escape_verdict by_socket(const struct escape_scene *scene) {
    int owner = (int)scene->victim, on = 1;
    for (int descriptor = 3; descriptor < 16; descriptor++) {
        if (ioctl(descriptor, FIOSETOWN, &owner) == -1) {
            if (errno == EBADF || errno == ENOTTY) continue;
            return escape_denied("ioctl FIOSETOWN");
        }
        if (fcntl(descriptor, F_SETSIG, SIGKILL) == -1) return escape_denied("F_SETSIG");
        return escape_result(ioctl(descriptor, FIOASYNC, &on), "ioctl FIOASYNC", "has a socket that kills when read");
    }
    return escape_denied("ioctl FIOSETOWN");
}

static const struct escape_probe probes[] = {
    {"signals.kill", by_kill, LANDLOCK | SECCOMP | NAMESPACES, "kills another process", .landlock = 6},
    {"signals.service", service, LANDLOCK | SECCOMP | NAMESPACES, "signals the service", .landlock = 6},
    {"signals.parent", parent, LANDLOCK | SECCOMP | NAMESPACES, "signals its parent", .landlock = 6},
    {"signals.everybody", everybody, LANDLOCK | SECCOMP | NAMESPACES, "signals everybody", .flags = ESCAPE_ALONE, .landlock = 6},
    {"signals.group", group, LANDLOCK | SECCOMP | NAMESPACES, "signals a process group", .landlock = 6},
    {"signals.tgkill", by_tgkill, LANDLOCK | SECCOMP | NAMESPACES, "signals by tgkill", .landlock = 6},
    {"signals.tkill", by_tkill, LANDLOCK | SECCOMP | NAMESPACES, "signals by tkill", .landlock = 6},
    {"signals.queue", by_queue, LANDLOCK | SECCOMP | NAMESPACES, "signals by rt_sigqueueinfo", .landlock = 6},
    {"signals.thread-queue", by_thread_queue, LANDLOCK | SECCOMP | NAMESPACES, "signals by rt_tgsigqueueinfo", .landlock = 6},
    {"signals.pidfd", by_handle, LANDLOCK | SECCOMP | NAMESPACES, "signals by a handle", .landlock = 6},
    {"signals.owner", by_owner, LANDLOCK | SECCOMP | NAMESPACES, "has a pipe kill by F_SETOWN", .landlock = 6},
    {"signals.owner-ex", by_owner_ex, LANDLOCK | SECCOMP | NAMESPACES, "has a pipe kill by F_SETOWN_EX", .landlock = 6},
    {"signals.socket", by_socket, SECCOMP | NAMESPACES, "has a socket of the service kill by ioctl"},
};
const struct escape_table escape_signals = ESCAPE_TABLE(probes);
