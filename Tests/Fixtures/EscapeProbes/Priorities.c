// More of the machine than its share: priorities, limits, and making others slower.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { io_realtime = 1 << 13, io_best = 2 << 13, io_process = 1 };

static struct escape_verdict nicer(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(setpriority(PRIO_PROCESS, 0, -5), "setpriority", "comes before others");
}
static struct escape_verdict realtime(const struct escape_scene *scene) {
    (void)scene;
    struct sched_param parameter = {.sched_priority = 1};
    return escape_result(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &parameter), "sched_setscheduler", "runs in real time");
}
static struct escape_verdict deadline(const struct escape_scene *scene) {
    (void)scene;
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {48, 6, 0, 0, 0, 1000000, 10000000, 10000000};
    return escape_result(syscall(SYS_sched_setattr, 0, &attributes, 0), "sched_setattr", "runs by a deadline");
}
static struct escape_verdict disk_realtime(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(syscall(SYS_ioprio_set, io_process, 0, io_realtime), "ioprio_set", "has the disk first");
}
static struct escape_verdict disk_best(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(syscall(SYS_ioprio_set, io_process, 0, io_best), "ioprio_set", "has the disk before its class");
}
static struct escape_verdict other_nice(const struct escape_scene *scene) {
    return escape_result(setpriority(PRIO_PROCESS, (id_t)scene->victim, 15), "setpriority", "made another process slower");
}
static struct escape_verdict other_disk(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_ioprio_set, io_process, scene->victim, 3 << 13), "ioprio_set", "gave another process the disk last");
}
static struct escape_verdict other_policy(const struct escape_scene *scene) {
    struct sched_param parameter = {0};
    return escape_result(
        syscall(SYS_sched_setscheduler, scene->victim, SCHED_IDLE, &parameter), "sched_setscheduler", "made another process idle");
}
static struct escape_verdict raise(const struct escape_scene *scene) {
    (void)scene;
    // Each limit by one; those that are infinite cannot be raised.
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        struct rlimit limit;
        if (getrlimit(resource, &limit) == -1 || limit.rlim_max == RLIM_INFINITY) continue;
        limit.rlim_max++;
        if (setrlimit(resource, &limit) == 0) return escape_reached("raised a limit");
    }
    errno = EPERM;
    return escape_denied("setrlimit");
}
static struct escape_verdict timers(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0), "prctl", "wakes the machine more often");
}
static struct escape_verdict write_own(const char *name, const char *value) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file == -1) return escape_denied("open");
    return escape_result(write(file, value, strlen(value)), "write", "wrote to it");
}
static struct escape_verdict out_of_memory(const struct escape_scene *scene) {
    (void)scene;
    return write_own("oom_score_adj", "1000");
}
static struct escape_verdict dumped(const struct escape_scene *scene) {
    (void)scene;
    return write_own("coredump_filter", "0x7f");
}
static struct escape_verdict group(const struct escape_scene *scene) {
    (void)scene;
    int folder = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char names[4096];
    if (folder == -1) return escape_denied("open");
    return escape_result(syscall(SYS_getdents64, folder, names, sizeof names), "getdents64", "listed them");
}

// Some systems let some users raise theirs.
static const char *no_more(int resource, rlim_t wanted, const char *text) {
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_max < wanted ? text : NULL;
}
static const char *no_nice(void) { return no_more(RLIMIT_NICE, 20 + 5, "the user's limit of priority is lower"); }
static const char *no_real_time(void) { return no_more(RLIMIT_RTPRIO, 1, "the user has no real time"); }

static const struct escape_probe probes[] = {
    {"priorities.nice", nicer, SECCOMP, "raises its priority", .refusal = no_nice},
    {"priorities.real-time", realtime, SECCOMP, "runs in real time", .refusal = no_real_time},
    {"priorities.deadline", deadline, SECCOMP | KERNEL, "runs by a deadline", 0, "only root may; a launcher that keeps powers would let it"},
    {"priorities.disk-real-time", disk_realtime, SECCOMP | KERNEL, "has the disk in real time", 0,
     "only root may; a launcher that keeps powers would let it"},
    {"priorities.disk", disk_best, SECCOMP, "raises its disk priority"},
    {"priorities.other-nice", other_nice, SECCOMP | NAMESPACES, "lowers another process's priority"},
    {"priorities.other-disk", other_disk, SECCOMP | NAMESPACES, "lowers another process's disk priority"},
    {"priorities.other-policy", other_policy, SECCOMP | NAMESPACES, "makes another process idle"},
    {"priorities.raise-limits", raise, KERNEL, "raises its limits", 0, "only root may; a user namespace must not become a way around that"},
    {"priorities.timers", timers, SECCOMP, "asks for finer timers"},
    {"priorities.out-of-memory", out_of_memory, LANDLOCK, "changes what is killed first without memory"},
    {"priorities.dump-filter", dumped, LANDLOCK, "changes what a core file would hold"},
    {"priorities.control-group", group, LANDLOCK | NAMESPACES, "lists the machine's control groups"},
};
const struct escape_table escape_priorities = ESCAPE_TABLE(probes);
