// Ways around the layers themselves: other numbers for the same calls, filters of its own, files of a crash.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
// The numbers of the 32-bit interface mean other calls than a filter for 64 bits takes them for.
static long call_32(long number, long first, long second) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second) : "memory", "r8", "r9", "r10", "r11");
    return result;
}
static struct escape_verdict interface_32(const struct escape_scene *scene) {
    (void)scene;
    // socketpair would be refused; getpid of 32 bits has the number of writev of 64.
    long result = call_32(20, 0, 0);
    if (result > 0) return escape_reached("calls by the 32-bit interface");
    errno = (int)-result;
    if (errno == ENOSYS) return escape_not_applicable("this kernel has no 32-bit interface");
    return escape_denied("int 0x80");
}
static struct escape_verdict interface_x32(const struct escape_scene *scene) {
    (void)scene;
    long result = syscall(0x40000000L | SYS_getpid);
    if (result == -1 && errno == ENOSYS) return escape_denied("getpid of x32");
    return escape_result(result, "getpid of x32", "calls by the x32 interface");
}
#endif

static struct sock_filter everything[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_fprog program = {1, everything};

static struct escape_verdict filter(const struct escape_scene *scene) {
    (void)scene;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return escape_result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp", "has a filter of its own");
}
static struct escape_verdict filter_prctl(const struct escape_scene *scene) {
    (void)scene;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return escape_result(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "prctl PR_SET_SECCOMP", "has a filter of its own");
}
static struct escape_verdict listener(const struct escape_scene *scene) {
    (void)scene;
    // Who listens to a filter answers calls in the kernel's place.
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return escape_result(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program), "seccomp",
        "listens to a filter");
}
static struct escape_verdict ruleset(const struct escape_scene *scene) {
    (void)scene;
    struct landlock_ruleset_attr attributes = {.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE};
    long rules = syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (rules == -1 && errno == EOPNOTSUPP) return escape_not_applicable("Landlock is not turned on");
    return escape_result(rules, "landlock_create_ruleset", "has rules of its own");
}
// Of rules that it has not.
static struct escape_verdict of_no_rules(long result, const char *call, const char *what) {
    if (result == -1 && errno == EBADF) return escape_reached(what);
    if (result == -1 && errno == EOPNOTSUPP) return escape_not_applicable("Landlock is not turned on");
    return escape_denied(call);
}
static struct escape_verdict add_rule(const struct escape_scene *scene) {
    (void)scene;
    struct landlock_path_beneath_attr rule = {LANDLOCK_ACCESS_FS_EXECUTE, -1};
    return of_no_rules(
        syscall(SYS_landlock_add_rule, -1, LANDLOCK_RULE_PATH_BENEATH, &rule, 0), "landlock_add_rule", "may add rules");
}
static struct escape_verdict restrict_itself(const struct escape_scene *scene) {
    (void)scene;
    return of_no_rules(syscall(SYS_landlock_restrict_self, -1, 0), "landlock_restrict_self", "may enter rules");
}
static struct escape_verdict personality_(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(syscall(SYS_personality, 0x0040000L), "personality", "has its addresses at fixed places");
}
static struct escape_verdict type_to_terminal(const struct escape_scene *scene) {
    (void)scene;
    int file = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (file == -1 && errno == ENXIO) return escape_not_applicable("there is no terminal");
    if (file == -1) return escape_denied("open");
    return escape_result(ioctl(file, TIOCSTI, "\n"), "ioctl TIOCSTI", "typed for the user");
}
static struct escape_verdict type_to_input(const struct escape_scene *scene) {
    (void)scene;
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (ioctl(descriptor, TIOCSTI, "\n") == 0) return escape_reached("typed for the user");
    return escape_denied("ioctl TIOCSTI");
}
static struct escape_verdict core(const struct escape_scene *scene) {
    // A crash that leaves all its memory in a file; the test looks for it.
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == -1) return escape_denied("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_max == 0) {
        errno = EPERM;
        return escape_denied("setrlimit RLIMIT_CORE");
    }
    (void)scene;
    return escape_reached("would leave a core file");
}

static const char *no_typing(void) {
    long allowed = 1;
    FILE *setting = fopen("/proc/sys/dev/tty/legacy_tiocsti", "re");
    if (!setting) return NULL;
    int count = fscanf(setting, "%ld", &allowed);
    fclose(setting);
    return count == 1 && !allowed ? "dev/tty/legacy_tiocsti is 0" : NULL;
}

static const struct escape_probe probes[] = {
#if defined(__x86_64__)
    {"bypasses.32-bit", interface_32, SECCOMP, "calls by the 32-bit interface", ESCAPE_MAY_DIE},
    {"bypasses.x32", interface_x32, SECCOMP, "calls by the x32 interface", ESCAPE_MAY_DIE},
#endif
    {"bypasses.filter", filter, STAGE_2, "sets a filter of its own"},
    {"bypasses.filter-prctl", filter_prctl, SECCOMP, "sets a filter of its own by prctl"},
    {"bypasses.listener", listener, STAGE_2, "listens to a filter of its own"},
    {"bypasses.ruleset", ruleset, STAGE_2, "makes rules of its own"},
    {"bypasses.rule", add_rule, STAGE_2, "adds to rules"},
    {"bypasses.restrict", restrict_itself, STAGE_2, "enters rules of its own"},
    {"bypasses.personality", personality_, SECCOMP, "has its addresses at fixed places"},
    {"bypasses.terminal", type_to_terminal, LANDLOCK | SECCOMP | NAMESPACES, "types at the user's terminal",
     .refusal = no_typing},
    {"bypasses.input", type_to_input, SECCOMP | KERNEL, "types at an inherited terminal", 0,
     "no terminal is inherited; if one were, it could be typed at"},
    {"bypasses.core", core, LIMITS, "leaves a core file"},
};
const struct escape_table escape_bypasses = ESCAPE_TABLE(probes);
