// Other processes: looking into them, making new ones, being no longer the service's.
#define _GNU_SOURCE
#include "Families.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

static struct escape_verdict read_proc(long process, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "/proc/%ld/%s", process, name);
    return escape_reading(open(path, O_RDONLY | O_CLOEXEC), "open");
}

static struct escape_verdict command_line(const struct escape_scene *scene) { return read_proc(scene->victim, "cmdline"); }
static struct escape_verdict variables(const struct escape_scene *scene) { return read_proc(scene->victim, "environ"); }
static struct escape_verdict maps(const struct escape_scene *scene) { return read_proc(scene->victim, "maps"); }
static struct escape_verdict service_status(const struct escape_scene *scene) { return read_proc(scene->service, "status"); }
static struct escape_verdict memory(const struct escape_scene *scene) {
    char path[128];
    snprintf(path, sizeof path, "/proc/%ld/mem", scene->victim);
    return escape_result(open(path, O_RDWR | O_CLOEXEC), "open", "opened its memory");
}
static struct escape_verdict root(const struct escape_scene *scene) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%ld/root%s", scene->victim, scene->secret);
    return escape_reading(open(path, O_RDONLY | O_CLOEXEC), "open");
}
static struct escape_verdict descriptors(const struct escape_scene *scene) {
    char path[128];
    snprintf(path, sizeof path, "/proc/%ld/fd", scene->victim);
    DIR *folder = opendir(path);
    if (!folder) return escape_denied("opendir");
    closedir(folder);
    return escape_reached("listed its descriptors");
}
static struct escape_verdict working_folder(const struct escape_scene *scene) {
    char path[128];
    snprintf(path, sizeof path, "/proc/%ld/cwd", scene->victim);
    return escape_result(chdir(path), "chdir", "is in its folder");
}
static struct escape_verdict list(const struct escape_scene *scene) {
    (void)scene;
    DIR *folder = opendir("/proc");
    if (!folder) return escape_denied("opendir");
    int others = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        long number = atol(entry->d_name);
        // The first process of a namespace of its own may be its starter.
        if (number > 1 && number != (long)getpid()) others++;
    }
    closedir(folder);
    return others ? escape_reached("sees other processes") : escape_held("sees no other process");
}

static struct escape_verdict attach(const struct escape_scene *scene) {
    long result = ptrace(PTRACE_SEIZE, (pid_t)scene->victim, NULL, NULL);
    return escape_result(result, "ptrace", "traces it");
}
static struct escape_verdict traced(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(ptrace(PTRACE_TRACEME, 0, NULL, NULL), "ptrace", "has its parent trace it");
}
// Another process has nothing at this address, but is asked only after it was seen whether it may be read.
static struct escape_verdict vm(long number, long process, const char *call) {
    char byte = 0;
    struct iovec mine = {&byte, 1}, theirs = {(void *)16, 1};
    long result = syscall(number, process, &mine, 1L, &theirs, 1L, 0L);
    if (result == -1 && errno == EFAULT) return escape_reached("may look into it");
    return escape_result(result, call, "looked into it");
}
static struct escape_verdict vm_read(const struct escape_scene *scene) {
    return vm(SYS_process_vm_readv, scene->victim, "process_vm_readv");
}
static struct escape_verdict vm_write(const struct escape_scene *scene) {
    return vm(SYS_process_vm_writev, scene->victim, "process_vm_writev");
}
static struct escape_verdict compare(const struct escape_scene *scene) {
    return escape_result(
        syscall(SYS_kcmp, (long)getpid(), scene->victim, KCMP_VM, 0L, 0L), "kcmp", "compared kernel objects");
}
static struct escape_verdict open_handle(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_pidfd_open, scene->victim, 0), "pidfd_open", "has a handle for it");
}
static struct escape_verdict take_descriptor(const struct escape_scene *scene) {
    int handle = (int)syscall(SYS_pidfd_open, scene->victim, 0);
    if (handle == -1) return escape_denied("pidfd_open");
    return escape_result(syscall(SYS_pidfd_getfd, handle, 0, 0), "pidfd_getfd", "took its standard input");
}
static struct escape_verdict robust_list(const struct escape_scene *scene) {
    void *head = NULL;
    size_t length = 0;
    return escape_result(syscall(SYS_get_robust_list, scene->victim, &head, &length), "get_robust_list", "has an address of it");
}
static struct escape_verdict limits(const struct escape_scene *scene) {
    unsigned long long limit[2];
    return escape_result(syscall(SYS_prlimit64, scene->victim, 7, NULL, limit), "prlimit64", "knows its limits");
}
static struct escape_verdict group(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_getpgid, scene->victim), "getpgid", "knows its process group");
}
static struct escape_verdict session(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_getsid, scene->victim), "getsid", "knows its session");
}
static struct escape_verdict affinity(const struct escape_scene *scene) {
    unsigned long all[16];
    memset(all, 0xff, sizeof all);
    return escape_result(syscall(SYS_sched_setaffinity, scene->victim, sizeof all, all), "sched_setaffinity", "set its processors");
}
static struct escape_verdict pages(const struct escape_scene *scene) {
    return escape_result(
        syscall(SYS_move_pages, scene->victim, 0L, NULL, NULL, NULL, 2), "move_pages", "may move its memory");
}

// New processes.

static struct escape_verdict born(long child, const char *call) {
    if (child == -1) return escape_denied(call);
    if (child == 0) _exit(0);
    waitpid((pid_t)child, NULL, __WALL);
    return escape_reached("made a process");
}

static struct escape_verdict by_fork(const struct escape_scene *scene) {
    (void)scene;
    return born(fork(), "fork");
}
#ifdef SYS_fork
static struct escape_verdict by_fork_call(const struct escape_scene *scene) {
    (void)scene;
    return born(syscall(SYS_fork), "fork");
}
#endif
static struct escape_verdict by_vfork(const struct escape_scene *scene) {
    (void)scene;
    pid_t child = vfork();
    if (child == 0) _exit(0);
    return born(child, "vfork");
}
static struct escape_verdict by_clone(const struct escape_scene *scene) {
    (void)scene;
    return born(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL), "clone");
}
static struct escape_verdict by_clone_parent(const struct escape_scene *scene) {
    (void)scene;
    long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) _exit(0);
    return escape_result(child, "clone", "gave its parent a child");
}
static struct escape_verdict by_clone3(const struct escape_scene *scene) {
    (void)scene;
    uint64_t arguments[8] = {[4] = SIGCHLD};
    return born(syscall(SYS_clone3, arguments, sizeof arguments), "clone3");
}
static struct escape_verdict by_spawn(const struct escape_scene *scene) {
    (void)scene;
    char *words[] = {(char *)escape_own_executable(), NULL};
    char *none[] = {ESCAPE_EXECUTED_VARIABLE "=1", NULL};
    pid_t child;
    int error = posix_spawn(&child, words[0], NULL, NULL, words, none);
    if (error == 0) return born(child, "posix_spawn");
    errno = error;
    return escape_denied("posix_spawn");
}
static struct escape_verdict by_shell(const struct escape_scene *scene) {
    (void)scene;
    int status = system("exit 7");
    if (status == -1) return escape_denied("system");
    return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? escape_reached("ran the shell") : escape_held("there was no shell");
}

// No longer the service's.

static struct escape_verdict outlive(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0), "prctl", "no longer dies with the service");
}
static struct escape_verdict leave_group(const struct escape_scene *scene) {
    pid_t theirs = (pid_t)syscall(SYS_getpgid, scene->service);
    if (theirs == -1) return escape_denied("getpgid");
    return escape_result(setpgid(0, theirs), "setpgid", "left its process group");
}
static struct escape_verdict adopt(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl", "adopts processes");
}
static struct escape_verdict allow_tracer(const struct escape_scene *scene) {
    (void)scene;
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == -1) return escape_denied("prctl PR_SET_DUMPABLE");
    return escape_reached("made itself dumpable");
}
static struct escape_verdict memory_map(const struct escape_scene *scene) {
    (void)scene;
    unsigned size = 0;
    return escape_result(prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, (unsigned long)&size, 0, 0), "prctl", "may move its own segments");
}
static struct escape_verdict dispatch(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(prctl(59, 0, 0, 0, 0), "prctl", "may redirect calls");
}

// Where this is above 0 nobody traces but his own children.
static const char *yama(void) { return escape_refusal("kernel/yama/ptrace_scope", 0); }

static const struct escape_probe probes[] = {
    {"processes.command-line", command_line, LANDLOCK | NAMESPACES, "reads another process's command line"},
    {"processes.variables", variables, LANDLOCK | NAMESPACES | STAGE_2, "reads another process's environment",
     .flags = BY_LANDLOCK},
    {"processes.maps", maps, LANDLOCK | NAMESPACES | STAGE_2, "reads another process's memory map", .flags = BY_LANDLOCK},
    {"processes.memory", memory, LANDLOCK | NAMESPACES | STAGE_2, "opens another process's memory",
     .flags = BY_LANDLOCK, .refusal = yama},
    {"processes.root", root, LANDLOCK | NAMESPACES | STAGE_2, "reads a file below another process's root", .flags = BY_LANDLOCK},
    {"processes.descriptors", descriptors, LANDLOCK | NAMESPACES, "lists another process's descriptors"},
    {"processes.folder", working_folder, LANDLOCK | NAMESPACES | STAGE_2, "goes to another process's folder",
     .flags = BY_LANDLOCK},
    {"processes.status", service_status, LANDLOCK | NAMESPACES, "reads the service's status"},
    {"processes.list", list, LANDLOCK | NAMESPACES, "lists processes"},
    {"processes.ptrace", attach, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "traces another process",
     .flags = BY_LANDLOCK, .refusal = yama},
    {"processes.ptrace-me", traced, SECCOMP, "has its parent trace it"},
    {"processes.vm-read", vm_read, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "reads another process's memory by process_vm_readv",
     .flags = BY_LANDLOCK, .refusal = yama},
    {"processes.vm-write", vm_write, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "writes another process's memory by process_vm_writev",
     .flags = BY_LANDLOCK, .refusal = yama},
    {"processes.kcmp", compare, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "compares itself with another process",
     .flags = BY_LANDLOCK},
    {"processes.pidfd", open_handle, SECCOMP | NAMESPACES, "opens a handle for another process"},
    {"processes.pidfd-getfd", take_descriptor, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "takes another process's descriptor",
     .flags = BY_LANDLOCK, .refusal = yama},
    {"processes.robust-list", robust_list, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "asks for another process's robust list",
     .flags = BY_LANDLOCK},
    {"processes.limits", limits, SECCOMP | NAMESPACES, "asks for another process's limits"},
    {"processes.group", group, SECCOMP | NAMESPACES, "asks for another process's group"},
    {"processes.session", session, SECCOMP | NAMESPACES, "asks for another process's session"},
    {"processes.affinity", affinity, SECCOMP | NAMESPACES, "sets another process's processors"},
    {"processes.move-pages", pages, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "moves another process's memory",
     .flags = BY_LANDLOCK},
    {"processes.fork", by_fork, SECCOMP, "forks"},
#ifdef SYS_fork
    {"processes.fork-call", by_fork_call, SECCOMP, "forks by the call of that name"},
#endif
    {"processes.vfork", by_vfork, SECCOMP, "forks by vfork"},
    {"processes.clone", by_clone, SECCOMP, "forks by clone"},
    {"processes.clone-parent", by_clone_parent, SECCOMP | NAMESPACES, "makes a sibling, which no process group tells"},
    {"processes.clone3", by_clone3, SECCOMP, "forks by clone3"},
    {"processes.spawn", by_spawn, SECCOMP | STAGE_2, "starts a program by posix_spawn"},
    {"processes.shell", by_shell, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "starts a shell by system"},
    {"processes.outlive", outlive, SECCOMP, "asks to live on after the service"},
    {"processes.leave-group", leave_group, SECCOMP | NAMESPACES, "leaves its process group"},
    {"processes.adopt", adopt, SECCOMP, "asks to be the parent of orphans"},
    {"processes.dumpable", allow_tracer, SECCOMP, "makes itself dumpable"},
    {"processes.segments", memory_map, SECCOMP, "moves its own segments by prctl"},
    {"processes.dispatch", dispatch, SECCOMP, "redirects its calls by prctl"},
};
const struct escape_table escape_processes = ESCAPE_TABLE(probes);
