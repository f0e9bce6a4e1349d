#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// MARK: Landlock. Headers of the distributions are older than the kernels.

struct landlock_ruleset {
    uint64_t files, network, scopes;
};
struct landlock_path {
    uint64_t rights;
    int32_t folder;
} __attribute__((packed));

enum { landlock_create_ruleset = 444, landlock_add_rule = 445, landlock_restrict_self = 446 };

int clinux_landlock_version(void) { return (int)syscall(landlock_create_ruleset, NULL, 0, 1); }

int clinux_landlock_create(uint64_t files, uint64_t network, uint64_t scopes) {
    // An older kernel takes the longer structure as long as what it does not know is zero.
    struct landlock_ruleset ruleset = {files, network, scopes};
    return (int)syscall(landlock_create_ruleset, &ruleset, sizeof ruleset, 0);
}

int clinux_landlock_allow(int ruleset, int folder, uint64_t rights) {
    enum { path_beneath = 1 };
    struct landlock_path path = {rights, folder};
    return (int)syscall(landlock_add_rule, ruleset, path_beneath, &path, 0);
}

int clinux_landlock_restrict(int ruleset, unsigned flags) {
    return (int)syscall(landlock_restrict_self, ruleset, flags);
}

// MARK: The process

int clinux_seccomp_filter(const void *program, size_t bytes, unsigned flags) {
    if (bytes % sizeof(struct sock_filter) != 0 || bytes / sizeof(struct sock_filter) > BPF_MAXINSNS) {
        errno = EINVAL;
        return -1;
    }
    struct sock_fprog filter = {
        .len = (unsigned short)(bytes / sizeof(struct sock_filter)), .filter = (struct sock_filter *)program};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
}

int clinux_seccomp_second_stage(unsigned flags) {
    // The first filter has refused the calls of other processors already: here a number has one meaning.
    static const struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 6, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, landlock_create_ruleset, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, landlock_add_rule, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, landlock_restrict_self, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    return clinux_seccomp_filter(program, sizeof program, flags);
}

int clinux_drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    memset(none, 0, sizeof none);
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1) return -1;
    return (int)syscall(SYS_capset, &header, none);
}

int clinux_set_disk_level(int level) {
    enum { who_process = 1, calling_process = 0, class_best_effort = 2, class_shift = 13 };
    return (int)syscall(SYS_ioprio_set, who_process, calling_process, class_best_effort << class_shift | level);
}

int clinux_set_limit(int resource, uint64_t value) {
    struct rlimit limit = {value, value};
    return setrlimit((__rlimit_resource_t)resource, &limit);
}

int clinux_open_place(const char *path) { return open(path, O_PATH | O_CLOEXEC); }

int clinux_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

int clinux_is_hung_up(int socket) {
    struct pollfd watched = {.fd = socket, .events = POLLRDHUP};
    return poll(&watched, 1, 0) == 1;
}

// MARK: Mounts

enum { open_tree_clone = 1, at_recursive = 0x8000, move_mount_f_empty_path = 4 };
enum { attribute_read_only = 1, attribute_no_suid = 2, attribute_no_devices = 4, attribute_no_programs = 8 };

static int set_attributes(int folder, const char *path, unsigned flags, uint64_t attributes) {
    struct {
        uint64_t set, clear, propagation, user_namespace;
    } change = {.set = attributes};
    return (int)syscall(442 /* mount_setattr */, folder, path, flags, &change, sizeof change);
}

int clinux_mount_copy(int source, int attributes) {
    // With everything below: who does not own the mounts may not look behind one.
    int tree = (int)syscall(
        428 /* open_tree */, source, "", AT_EMPTY_PATH | at_recursive | open_tree_clone | O_CLOEXEC);
    if (tree == -1) return -1;
    uint64_t wanted = attribute_no_suid;
    if (attributes & clinux_mount_read_only) wanted |= attribute_read_only;
    if (attributes & clinux_mount_no_devices) wanted |= attribute_no_devices;
    if (attributes & clinux_mount_no_programs) wanted |= attribute_no_programs;
    if (set_attributes(tree, "", AT_EMPTY_PATH | at_recursive, wanted) == 0) return tree;
    int number = errno;
    close(tree);
    errno = number;
    return -1;
}

int clinux_mount_place(int tree, const char *path) {
    return (int)syscall(429 /* move_mount */, tree, "", AT_FDCWD, path, move_mount_f_empty_path);
}

int clinux_mount_empty(const char *path) {
    return mount("root", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,nr_inodes=512,mode=755");
}

int clinux_mount_make_read_only(const char *path) { return set_attributes(AT_FDCWD, path, 0, attribute_read_only); }

int clinux_mount_processes(const char *path) {
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount("proc", path, "proc", flags, "subset=pid") == 0) return 0;
    return errno == EINVAL ? mount("proc", path, "proc", flags, NULL) : -1;
}

int clinux_enter_root(void) {
    // The old root comes to lie on the new one, and goes.
    if (syscall(SYS_pivot_root, ".", ".") == -1) return -1;
    if (umount2(".", MNT_DETACH) == -1) return -1;
    return chdir("/");
}
