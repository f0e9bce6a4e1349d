#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x00001000U
#endif
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int clinux_set_idle_io_priority(void) {
    enum { who_process = 1, calling_thread = 0, class_idle = 3, class_shift = 13 };
    return (int)syscall(SYS_ioprio_set, who_process, calling_thread, class_idle << class_shift);
}

int clinux_thread_setname(pthread_t thread, const char *name) { return pthread_setname_np(thread, name); }
int clinux_pipe2(int fds[2], int flags) { return pipe2(fds, flags); }
int clinux_accept4(int socket, int flags) { return accept4(socket, NULL, NULL, flags); }

int clinux_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve) {
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int clinux_renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    return renameat2(from_directory, from, to_directory, to, flags);
}

int clinux_fallocate(int fd, int mode, off_t offset, off_t length) { return fallocate(fd, mode, offset, length); }

int clinux_set_direct(int fd, int is_direct) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return -1;
    return fcntl(fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

int clinux_sync_file_range(int fd, off_t offset, off_t length, unsigned flags) {
    return sync_file_range(fd, offset, length, flags);
}

int clinux_get_attribute(int fd, const char *name, void *value, size_t size) {
    return (int)fgetxattr(fd, name, value, size);
}
int clinux_set_attribute(int fd, const char *name, const void *value, size_t size) {
    return fsetxattr(fd, name, value, size, 0);
}

int clinux_chmod_path(int fd, mode_t mode) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return chmod(path, mode);
}
ssize_t clinux_copy_file_range(int from, int to, size_t count) {
    return copy_file_range(from, NULL, to, NULL, count, 0);
}

int clinux_syncfs(int fd) { return syncfs(fd); }

int clinux_pidfd_open(pid_t pid, unsigned flags) { return (int)syscall(SYS_pidfd_open, pid, flags); }
int clinux_pidfd_send_signal(int pidfd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

int clinux_mount_id(int fd, uint64_t *mount_id) {
    struct statx result;
    memset(&result, 0, sizeof result);
    int code = statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID_UNIQUE, &result);
    if (code == 0 && !(result.stx_mask & STATX_MNT_ID_UNIQUE)) code = statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &result);
    // stx_mnt_id follows stx_dev_minor; older headers keep the place in their spare fields.
    if (code == 0) memcpy(mount_id, (const char *)&result + 0x90, sizeof *mount_id);
    return code;
}

int clinux_file_system_magic(int fd, uint32_t *magic) {
    struct statfs result;
    int code = fstatfs(fd, &result);
    if (code == 0) *magic = (uint32_t)result.f_type;
    return code;
}

int clinux_peer_credentials(int socket, pid_t *pid, uid_t *uid, gid_t *gid) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    int code = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length);
    if (code == 0) {
        *pid = credentials.pid;
        *uid = credentials.uid;
        *gid = credentials.gid;
    }
    return code;
}

int clinux_peer_pidfd(int socket) {
    int descriptor = -1;
    socklen_t length = sizeof descriptor;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) == -1) return -1;
    return descriptor;
}

enum { descriptors_max = 4 };

ssize_t clinux_send_descriptors(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count) {
    if (descriptor_count < 0 || descriptor_count > descriptors_max) {
        errno = EINVAL;
        return -1;
    }
    struct iovec vector = {(void *)bytes, count};
    union {
        char bytes[CMSG_SPACE(sizeof(int) * descriptors_max)];
        struct cmsghdr alignment;
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    if (descriptor_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)descriptor_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)descriptor_count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * (size_t)descriptor_count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

ssize_t clinux_receive_descriptors(int socket, void *bytes, size_t count, int *descriptors, int *descriptor_count) {
    int room = *descriptor_count;
    *descriptor_count = 0;
    struct iovec vector = {bytes, count};
    union {
        char bytes[CMSG_SPACE(sizeof(int) * descriptors_max)];
        struct cmsghdr alignment;
    } control;
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t arrived = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t index = 0; index < arrived; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof descriptor);
            if (*descriptor_count < room) descriptors[(*descriptor_count)++] = descriptor;
            else close(descriptor);
        }
    }
    return received;
}

// What the files uid_map and gid_map take; written before the fork.
struct namespace_maps {
    char users[64], groups[64];
};

static int write_text(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file == -1) return -1;
    ssize_t written = write(file, text, strlen(text));
    int number = errno;
    close(file);
    errno = number;
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

// In a new user namespace: the caller's ids mean themselves, all others nobody, and one capability outlives exec.
static int claim_namespaces(const struct namespace_maps *maps) {
    if (write_text("/proc/self/setgroups", "deny") == -1) return -1;
    if (write_text("/proc/self/uid_map", maps->users) == -1) return -1;
    if (write_text("/proc/self/gid_map", maps->groups) == -1) return -1;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    memset(data, 0, sizeof data);
    unsigned mounts = CAP_TO_MASK(CAP_SYS_ADMIN);
    data[0].effective = data[0].permitted = data[0].inheritable = mounts;
    if (syscall(SYS_capset, &header, data) == -1) return -1;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}

// Runs in the child: only calls that are safe after fork in a process with threads.
static void exec_child(const struct clinux_spawn *spawn, const struct namespace_maps *maps, int report) {
    sigset_t none;
    sigemptyset(&none);
    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++) sigaction(number, &standard, NULL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (spawn->new_session) setsid();
    else setpgid(0, 0);
    if (spawn->detached) {
        pid_t child = _Fork();
        if (child == -1) goto failed;
        if (child > 0) _exit(0);
    }
    if (spawn->namespaces && claim_namespaces(maps) == -1) goto failed;
    if (spawn->directory >= 0 && fchdir(spawn->directory) == -1) goto failed;
    // Move everything out of the way of the target numbers first, then into place.
    int count = spawn->descriptor_count;
    int moved[64];
    if (count > 64) {
        errno = EINVAL;
        goto failed;
    }
    int floor = count > 3 ? count : 3;
    report = fcntl(report, F_DUPFD_CLOEXEC, floor);
    for (int index = 0; index < count; index++) {
        moved[index] = fcntl(spawn->descriptors[index], F_DUPFD_CLOEXEC, floor);
        if (moved[index] == -1) goto failed;
    }
    for (int index = 0; index < count; index++) {
        if (dup2(moved[index], index) == -1) goto failed;
    }
    // Everything above is closed by exec; a descriptor somebody forgot to mark is closed here.
    syscall(SYS_close_range, (unsigned)count, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
    execve(spawn->path, spawn->arguments, spawn->environment);
failed:;
    int number = errno;
    (void)!write(report, &number, sizeof number);
    _exit(127);
}

// For a child that shares the memory until it is another program: nothing of a large process is copied.
struct shared_child {
    const struct clinux_spawn *spawn;
    const struct namespace_maps *maps;
    int report;
};

static int run_shared_child(void *argument) {
    const struct shared_child *child = argument;
    exec_child(child->spawn, child->maps, child->report);
    return 127;
}

static pid_t clone_into_namespaces(const struct clinux_spawn *spawn, int report) {
    enum { stack_size = 64 << 10 };
    struct namespace_maps maps;
    // Root is nobody's name in there: what runs as 0 would have its capabilities again.
    unsigned user = geteuid(), group = getegid();
    snprintf(maps.users, sizeof maps.users, "%u %u 1", user ? user : 1000, user);
    snprintf(maps.groups, sizeof maps.groups, "%u %u 1", group ? group : 1000, group);
    struct shared_child child = {spawn, &maps, report};
    char *stack = malloc(stack_size);
    if (!stack) return -1;
    int flags = CLONE_VM | CLONE_VFORK | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC;
    pid_t process = clone(run_shared_child, stack + stack_size, flags | SIGCHLD, &child);
    int number = errno;
    free(stack);
    errno = number;
    return process;
}

int clinux_spawn(const struct clinux_spawn *spawn, pid_t *pid, int *pidfd) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) == -1) return -1;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = spawn->namespaces ? clone_into_namespaces(spawn, report[1]) : fork();
    if (child == 0) exec_child(spawn, NULL, report[1]);
    int number = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child == -1) {
        close(report[0]);
        errno = number;
        return -1;
    }
    int child_number = 0;
    ssize_t got;
    do got = read(report[0], &child_number, sizeof child_number);
    while (got == -1 && errno == EINTR);
    close(report[0]);
    if (got > 0) {
        while (waitpid(child, NULL, 0) == -1 && errno == EINTR) {}
        errno = child_number;
        return -1;
    }
    if (spawn->detached) {
        while (waitpid(child, NULL, 0) == -1 && errno == EINTR) {}
        *pid = -1;
        *pidfd = -1;
        return 0;
    }
    *pid = child;
    *pidfd = clinux_pidfd_open(child, 0);
    if (*pidfd >= 0) fcntl(*pidfd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int clinux_set_parent_death_signal(int signal) { return prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0); }
int clinux_no_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }
int clinux_close_range(unsigned first, unsigned last, unsigned flags) {
    return (int)syscall(SYS_close_range, first, last, flags);
}
int clinux_wait_status_exited(int status) { return WIFEXITED(status); }
int clinux_wait_status_code(int status) { return WEXITSTATUS(status); }
int clinux_wait_status_signal(int status) { return WTERMSIG(status); }
