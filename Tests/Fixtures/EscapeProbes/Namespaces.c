// Namespaces of its own, with which an ordinary user gets the powers of root over them, and what these would be good for.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

static struct escape_verdict user(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(unshare(CLONE_NEWUSER), "unshare CLONE_NEWUSER", "is root in a namespace of its own");
}
// With a user namespace or, where it has those powers already, without.
static int with_powers(int flags) { return unshare(CLONE_NEWUSER | flags); }

static struct escape_verdict kind(int flag, const char *what) {
    return escape_result(with_powers(flag), "unshare", what);
}
static struct escape_verdict network(const struct escape_scene *scene) {
    (void)scene;
    return kind(CLONE_NEWNET, "has a network of its own");
}
static struct escape_verdict processes(const struct escape_scene *scene) {
    (void)scene;
    return kind(CLONE_NEWPID, "has processes of its own");
}
static struct escape_verdict communication(const struct escape_scene *scene) {
    (void)scene;
    return kind(CLONE_NEWIPC, "has shared memory of its own");
}
static struct escape_verdict time_of_its_own(const struct escape_scene *scene) {
    (void)scene;
    return kind(CLONE_NEWTIME, "has a time of its own");
}
static struct escape_verdict groups(const struct escape_scene *scene) {
    (void)scene;
    return kind(CLONE_NEWCGROUP, "has control groups of its own");
}
static struct escape_verdict name(const struct escape_scene *scene) {
    (void)scene;
    if (with_powers(CLONE_NEWUTS) == -1) return escape_denied("unshare");
    return escape_result(sethostname("escape", 6), "sethostname", "named a machine of its own");
}
static struct escape_verdict by_clone(const struct escape_scene *scene) {
    (void)scene;
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) _exit(0);
    if (child == -1) return escape_denied("clone CLONE_NEWUSER");
    waitpid((pid_t)child, NULL, 0);
    return escape_reached("made a process in a namespace of its own");
}
static struct escape_verdict by_clone3(const struct escape_scene *scene) {
    (void)scene;
    uint64_t arguments[8] = {[0] = CLONE_NEWUSER, [4] = SIGCHLD};
    long child = syscall(SYS_clone3, arguments, sizeof arguments);
    if (child == 0) _exit(0);
    if (child == -1) return escape_denied("clone3 CLONE_NEWUSER");
    waitpid((pid_t)child, NULL, 0);
    return escape_reached("made a process in a namespace of its own");
}
static struct escape_verdict enter_other(const struct escape_scene *scene) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/uts", scene->victim);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space == -1) return escape_denied("open");
    return escape_result(setns(space, 0), "setns", "entered another process's namespace");
}
static struct escape_verdict enter_own(const struct escape_scene *scene) {
    (void)scene;
    int space = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    if (space == -1) return escape_denied("open");
    // The kernel refuses the namespace that one is in by EINVAL: the call was let through.
    if (setns(space, CLONE_NEWUSER) == -1 && errno == EINVAL) return escape_reached("may ask to enter namespaces");
    return escape_denied("setns");
}

static int with_mounts(void) { return with_powers(CLONE_NEWNS); }
static struct escape_verdict mount_memory(const struct escape_scene *scene) {
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    return escape_result(mount("escape", scene->home, "tmpfs", 0, NULL), "mount", "mounted memory over its home");
}
static struct escape_verdict bind_outside(const struct escape_scene *scene) {
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    if (mount(scene->outside, scene->home, NULL, MS_BIND, NULL) == -1) return escape_denied("mount MS_BIND");
    return escape_reading(
        open(escape_path(scene->home, strrchr(scene->secret, '/') + 1), O_RDONLY | O_CLOEXEC), "open");
}
static struct escape_verdict remount_bundle(const struct escape_scene *scene) {
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    if (mount(scene->bundle, scene->bundle, NULL, MS_BIND, NULL) == -1) return escape_denied("mount MS_BIND");
    if (mount(NULL, scene->bundle, NULL, MS_BIND | MS_REMOUNT, NULL) == -1) return escape_denied("mount MS_REMOUNT");
    int file = open(escape_path(scene->bundle, "made"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return escape_result(file, "open", "made its bundle writable");
}
static struct escape_verdict unmount_root(const struct escape_scene *scene) {
    (void)scene;
    // What lies below the root that it was given.
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    return escape_result(umount2("/proc", MNT_DETACH), "umount2", "unmounted a file system");
}
static struct escape_verdict mount_plain(const struct escape_scene *scene) {
    return escape_result(mount("escape", scene->home, "tmpfs", 0, NULL), "mount", "mounted memory over its home");
}
static struct escape_verdict new_mount(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(syscall(SYS_fsopen, "tmpfs", 0), "fsopen", "may make file systems");
}
static struct escape_verdict new_mount_inside(const struct escape_scene *scene) {
    (void)scene;
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    return escape_result(syscall(SYS_fsopen, "tmpfs", 0), "fsopen", "may make file systems");
}
static struct escape_verdict copy_tree(const struct escape_scene *scene) {
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    return escape_result(syscall(SYS_open_tree, AT_FDCWD, scene->home, 1), "open_tree", "copied a mount");
}
static struct escape_verdict move_tree(const struct escape_scene *scene) {
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, scene->home, 1);
    if (tree == -1) return escape_denied("open_tree");
    return escape_result(
        syscall(SYS_move_mount, tree, "", AT_FDCWD, scene->temporary, 4), "move_mount", "moved a mount");
}
static struct escape_verdict other_root(const struct escape_scene *scene) {
    if (with_mounts() == -1) return escape_denied("unshare CLONE_NEWNS");
    if (mount(scene->home, scene->home, NULL, MS_BIND, NULL) == -1) return escape_denied("mount MS_BIND");
    if (chdir(scene->home) == -1) return escape_denied("chdir");
    return escape_result(syscall(SYS_pivot_root, ".", "."), "pivot_root", "has another root");
}
static struct escape_verdict change_root(const struct escape_scene *scene) {
    if (with_powers(0) == -1) return escape_denied("unshare CLONE_NEWUSER");
    return escape_result(chroot(scene->home), "chroot", "has another root");
}
static struct escape_verdict change_root_plain(const struct escape_scene *scene) {
    return escape_result(chroot(scene->home), "chroot", "has another root");
}
static struct escape_verdict gain_user(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(setuid(0), "setuid", "is root");
}
static struct escape_verdict map_root(const struct escape_scene *scene) {
    (void)scene;
    char map[64];
    int length = snprintf(map, sizeof map, "0 %d 1", (int)getuid());
    if (with_powers(0) == -1) return escape_denied("unshare CLONE_NEWUSER");
    int file = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    if (file == -1) return escape_denied("open");
    return escape_result(write(file, map, (size_t)length), "write", "has the name of root");
}

static const struct escape_probe probes[] = {
    {"namespaces.user", user, SECCOMP, "makes a user namespace", .refusal = escape_no_user_namespaces},
    {"namespaces.network", network, SECCOMP, "makes a network", .refusal = escape_no_user_namespaces},
    {"namespaces.processes", processes, SECCOMP, "makes a namespace of processes", .refusal = escape_no_user_namespaces},
    {"namespaces.ipc", communication, SECCOMP, "makes a namespace of shared memory", .refusal = escape_no_user_namespaces},
    {"namespaces.time", time_of_its_own, SECCOMP, "makes a time", .refusal = escape_no_user_namespaces},
    {"namespaces.cgroups", groups, SECCOMP, "makes a namespace of control groups", .refusal = escape_no_user_namespaces},
    {"namespaces.host-name", name, SECCOMP, "names a machine of its own", .refusal = escape_no_user_namespaces},
    {"namespaces.clone", by_clone, SECCOMP, "makes a process in a user namespace", .refusal = escape_no_user_namespaces},
    {"namespaces.clone3", by_clone3, SECCOMP, "the same by clone3", .refusal = escape_no_user_namespaces},
    {"namespaces.enter", enter_other, SECCOMP | KERNEL, "enters another process's namespace", 0,
     "only root of the namespace may; with powers over a user namespace it would be the way out"},
    {"namespaces.enter-own", enter_own, SECCOMP, "asks to enter its own namespace again"},
    {"namespaces.mount", mount_memory, LANDLOCK | SECCOMP | STAGE_2, "mounts memory in a namespace of its own",
     .flags = BY_LANDLOCK, .refusal = escape_no_user_namespaces},
    {"namespaces.bind", bind_outside, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "binds a folder outside over its home",
     .flags = BY_LANDLOCK, .refusal = escape_no_user_namespaces},
    {"namespaces.remount", remount_bundle, LANDLOCK | SECCOMP | NAMESPACES | STAGE_2, "makes its bundle writable by a mount",
     .flags = BY_LANDLOCK, .refusal = escape_no_user_namespaces},
    {"namespaces.unmount", unmount_root, SECCOMP | KERNEL, "unmounts what its root is made of", 0,
     "the kernel locks mounts that a namespace was made with"},
    {"namespaces.mount-plain", mount_plain, SECCOMP | KERNEL, "mounts memory", 0, "only root may; a launcher that keeps powers would let it"},
    {"namespaces.fsopen", new_mount, SECCOMP | KERNEL, "makes a file system", 0, "only root may; a launcher that keeps powers would let it"},
    {"namespaces.fsopen-inside", new_mount_inside, SECCOMP, "makes a file system in a namespace of its own",
     .refusal = escape_no_user_namespaces},
    {"namespaces.open-tree", copy_tree, SECCOMP, "copies a mount", .refusal = escape_no_user_namespaces},
    {"namespaces.move-mount", move_tree, LANDLOCK | SECCOMP | STAGE_2, "moves a mount",
     .flags = BY_LANDLOCK, .refusal = escape_no_user_namespaces},
    {"namespaces.pivot-root", other_root, LANDLOCK | SECCOMP | STAGE_2, "changes its root",
     .flags = BY_LANDLOCK, .refusal = escape_no_user_namespaces},
    {"namespaces.chroot", change_root, SECCOMP, "changes its root by chroot in a namespace of its own",
     .refusal = escape_no_user_namespaces},
    {"namespaces.chroot-plain", change_root_plain, SECCOMP | KERNEL, "changes its root by chroot", 0,
     "only root may; a launcher that keeps powers would let it"},
    {"namespaces.setuid", gain_user, KERNEL, "becomes root", 0, "only root may; a launcher that maps root into its namespace would let it"},
    {"namespaces.map-root", map_root, LANDLOCK | SECCOMP, "maps root into a namespace of its own",
     .refusal = escape_no_user_namespaces},
};
const struct escape_table escape_namespaces = ESCAPE_TABLE(probes);
