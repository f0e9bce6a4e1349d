// Parts of the kernel that an extension has no use for: rings, programs, keys, counters, the machine's own settings.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/quota.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/timex.h>
#include <time.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

static struct escape_verdict ring(const struct escape_scene *scene) {
    (void)scene;
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    return escape_result(syscall(SYS_io_uring_setup, 4, &parameters), "io_uring_setup", "has a ring, which no filter sees into");
}
static struct escape_verdict async(const struct escape_scene *scene) {
    (void)scene;
    unsigned long context = 0;
    return escape_result(syscall(SYS_io_setup, 4, &context), "io_setup", "has a context for asynchronous calls");
}
static struct escape_verdict bpf_map(const struct escape_scene *scene) {
    (void)scene;
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.map_type = BPF_MAP_TYPE_ARRAY;
    attributes.key_size = attributes.value_size = 4;
    attributes.max_entries = 1;
    return escape_result(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes), "bpf", "has a map");
}
static struct escape_verdict perf(const struct escape_scene *scene, long process) {
    (void)scene;
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    return escape_result(syscall(SYS_perf_event_open, &attributes, process, -1, -1, 0L), "perf_event_open", "has a counter");
}
static struct escape_verdict perf_self(const struct escape_scene *scene) { return perf(scene, 0); }
static struct escape_verdict perf_other(const struct escape_scene *scene) { return perf(scene, scene->victim); }

static struct escape_verdict faults(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(syscall(SYS_userfaultfd, O_CLOEXEC | 1), "userfaultfd", "handles its own page faults");
}
static struct escape_verdict secret_memory(const struct escape_scene *scene) {
    (void)scene;
    long file = syscall(SYS_memfd_secret, 0);
    return escape_result(file, "memfd_secret", "has memory that nobody counts");
}
static struct escape_verdict add_key(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(
        syscall(SYS_add_key, "user", "escape", "x", 1L, KEY_SPEC_PROCESS_KEYRING), "add_key", "has a key");
}
static struct escape_verdict user_keys(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(
        syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1), "keyctl", "has the user's keys");
}
static struct escape_verdict join_session(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL), "keyctl", "has a session of keys");
}
static struct escape_verdict request_key(const struct escape_scene *scene) {
    (void)scene;
    long key = syscall(SYS_request_key, "user", "escape", NULL, 0L);
    // Having looked for it is enough: the user's keys were searched.
    if (key == -1 && (errno == ENOKEY || errno == ENOENT)) return escape_reached("searched the user's keys");
    return escape_result(key, "request_key", "searched the user's keys");
}

static struct escape_verdict foreign_segment(const struct escape_scene *scene) {
    int segment = shmget((key_t)scene->shared_memory, 1, 0);
    if (segment == -1) return escape_denied("shmget");
    return escape_result((long)shmat(segment, NULL, SHM_RDONLY), "shmat", "reads another program's memory");
}
static struct escape_verdict message_queue(const struct escape_scene *scene) {
    (void)scene;
    int queue = msgget(IPC_PRIVATE, 0600);
    if (queue == -1) return escape_denied("msgget");
    msgctl(queue, IPC_RMID, NULL);
    return escape_reached("made a queue that would outlive it");
}
static struct escape_verdict semaphores(const struct escape_scene *scene) {
    (void)scene;
    int set = semget(IPC_PRIVATE, 1, 0600);
    if (set == -1) return escape_denied("semget");
    semctl(set, 0, IPC_RMID);
    return escape_reached("made semaphores that would outlive it");
}

// The machine's own. Arguments do no harm, also where they are let through.

static struct escape_verdict settle(long result, const char *call, const char *what) {
    // Everything but a refusal means that the question was let through.
    if (result == -1 && (errno == EPERM || errno == ENOSYS || errno == EACCES)) return escape_denied(call);
    return escape_reached(what);
}
static struct escape_verdict kernel_log(const struct escape_scene *scene) {
    (void)scene;
    char text[64];
    return escape_result(syscall(SYS_syslog, 3, text, sizeof text), "syslog", "reads the kernel's log");
}
static struct escape_verdict restart(const struct escape_scene *scene) {
    (void)scene;
    return settle(
        syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, 0x5EED, NULL), "reboot", "may restart the machine");
}
static struct escape_verdict other_kernel(const struct escape_scene *scene) {
    (void)scene;
    return settle(syscall(SYS_kexec_load, 0L, 0L, NULL, 0xFFFFL), "kexec_load", "may load a kernel");
}
static struct escape_verdict module(const struct escape_scene *scene) {
    (void)scene;
    return settle(syscall(SYS_finit_module, -1, "", 0), "finit_module", "may load a module");
}
static struct escape_verdict remove_module(const struct escape_scene *scene) {
    (void)scene;
    return settle(syscall(SYS_delete_module, "escape_missing", O_NONBLOCK), "delete_module", "may remove a module");
}
static struct escape_verdict swap(const struct escape_scene *scene) {
    return settle(syscall(SYS_swapon, escape_path(scene->home, "missing"), 0), "swapon", "may add swap space");
}
static struct escape_verdict unswap(const struct escape_scene *scene) {
    return settle(syscall(SYS_swapoff, escape_path(scene->home, "missing")), "swapoff", "may remove swap space");
}
static struct escape_verdict accounting(const struct escape_scene *scene) {
    return settle(syscall(SYS_acct, escape_path(scene->home, "missing")), "acct", "may account for processes");
}
static struct escape_verdict quota(const struct escape_scene *scene) {
    (void)scene;
    return settle(syscall(SYS_quotactl, QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL), "quotactl", "may ask for quotas");
}
static struct escape_verdict set_clock(const struct escape_scene *scene) {
    (void)scene;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return settle(syscall(SYS_clock_settime, CLOCK_REALTIME, &now), "clock_settime", "sets the clock");
}
static struct escape_verdict tune_clock(const struct escape_scene *scene) {
    (void)scene;
    struct timex change;
    memset(&change, 0, sizeof change);
    change.modes = ADJ_STATUS;
    return settle(syscall(SYS_adjtimex, &change), "adjtimex", "tunes the clock");
}
static struct escape_verdict name_host(const struct escape_scene *scene) {
    (void)scene;
    char name[256];
    if (gethostname(name, sizeof name) == -1) return escape_denied("uname");
    return settle(syscall(SYS_sethostname, name, strlen(name)), "sethostname", "names the machine");
}
static struct escape_verdict hang_up(const struct escape_scene *scene) {
    (void)scene;
    return settle(syscall(SYS_vhangup), "vhangup", "hung up the terminal");
}

#if defined(__x86_64__)
static struct escape_verdict ports(const struct escape_scene *scene) {
    (void)scene;
    return settle(syscall(SYS_ioperm, 0x80L, 1L, 1), "ioperm", "has a port of the processor");
}
static struct escape_verdict segments(const struct escape_scene *scene) {
    (void)scene;
    unsigned description[4] = {0, 0, 0, 0};
    return escape_result(syscall(SYS_modify_ldt, 1, description, sizeof description), "modify_ldt", "changed its segments");
}
#endif

static const char *paranoid(void) { return escape_refusal("kernel/perf_event_paranoid", 2); }
static const char *no_rings(void) { return escape_refusal("kernel/io_uring_disabled", 0); }
static const char *no_bpf(void) { return escape_refusal("kernel/unprivileged_bpf_disabled", 0); }
static const char *no_log(void) { return escape_refusal("kernel/dmesg_restrict", 0); }

static const struct escape_probe probes[] = {
    {"kernel.io-uring", ring, SECCOMP, "sets up a ring", .refusal = no_rings},
    {"kernel.aio", async, SECCOMP, "sets up asynchronous calls"},
    {"kernel.bpf", bpf_map, SECCOMP, "makes a map of the kernel's programs", .refusal = no_bpf},
    {"kernel.perf", perf_self, SECCOMP, "opens a counter", .refusal = paranoid},
    {"kernel.perf-other", perf_other, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "opens a counter of another process",
     .flags = BY_LANDLOCK, .refusal = paranoid},
    {"kernel.userfaultfd", faults, SECCOMP, "handles its own page faults"},
    {"kernel.memfd-secret", secret_memory, SECCOMP, "makes secret memory"},
    {"kernel.add-key", add_key, SECCOMP, "adds a key"},
    {"kernel.user-keys", user_keys, SECCOMP, "opens the user's keys"},
    {"kernel.key-session", join_session, SECCOMP, "joins a session of keys"},
    {"kernel.request-key", request_key, SECCOMP, "searches for a key"},
    {"kernel.shared-memory", foreign_segment, SECCOMP | NAMESPACES, "attaches another program's shared memory"},
    {"kernel.message-queue", message_queue, SECCOMP, "makes a message queue"},
    {"kernel.semaphores", semaphores, SECCOMP, "makes semaphores"},
    {"kernel.log", kernel_log, SECCOMP, "reads the kernel's log", .refusal = no_log},
    {"kernel.reboot", restart, SECCOMP | KERNEL, "restarts the machine", 0,
     "only root may; in a user namespace a filter is what is left between"},
    {"kernel.kexec", other_kernel, SECCOMP | KERNEL, "loads another kernel", 0, "only root may; a filter keeps the call from being asked"},
    {"kernel.module", module, SECCOMP | KERNEL, "loads a module", 0, "only root may; a filter keeps the call from being asked"},
    {"kernel.remove-module", remove_module, SECCOMP | KERNEL, "removes a module", 0,
     "only root may; a filter keeps the call from being asked"},
    {"kernel.swapon", swap, SECCOMP | KERNEL, "adds swap space", 0, "only root may; a filter keeps the call from being asked"},
    {"kernel.swapoff", unswap, SECCOMP | KERNEL, "removes swap space", 0, "only root may; a filter keeps the call from being asked"},
    {"kernel.acct", accounting, SECCOMP | KERNEL, "accounts for processes", 0,
     "only root may; a filter keeps the call from being asked"},
    {"kernel.quota", quota, SECCOMP, "asks for quotas"},
    {"kernel.clock", set_clock, SECCOMP | KERNEL, "sets the clock", 0, "only root may; a filter keeps the call from being asked"},
    {"kernel.clock-tune", tune_clock, SECCOMP | KERNEL, "tunes the clock", 0, "only root may; a filter keeps the call from being asked"},
    {"kernel.host-name", name_host, SECCOMP | KERNEL, "names the machine", 0,
     "only root may; a user namespace must not become a way around that"},
    {"kernel.hang-up", hang_up, SECCOMP | KERNEL, "hangs up the terminal", 0, "only root may; a filter keeps the call from being asked"},
#if defined(__x86_64__)
    {"kernel.ports", ports, SECCOMP | KERNEL, "asks for ports of the processor", 0,
     "only root may; a filter keeps the call from being asked"},
    {"kernel.segments", segments, SECCOMP, "changes its segments"},
#endif
};
const struct escape_table escape_kernel_calls = ESCAPE_TABLE(probes);
