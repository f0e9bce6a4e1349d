// Calls and macros of Linux that Swift's Glibc module does not show: thin wrappers, no policy.
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/un.h>
// After those of libc, which declare the same socket types.
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "CLinuxSandbox.h"

int clinux_thread_setname(pthread_t thread, const char *name);
// What the calling thread reads and writes waits for everybody else's (IOPRIO_CLASS_IDLE).
int clinux_set_idle_io_priority(void);
int clinux_pipe2(int fds[2], int flags);
int clinux_accept4(int socket, int flags);
int clinux_openat2(int directory, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve);
int clinux_renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags);
int clinux_fallocate(int fd, int mode, off_t offset, off_t length);
// Whether what is written to `fd` goes past the page cache.
int clinux_set_direct(int fd, int is_direct);
int clinux_sync_file_range(int fd, off_t offset, off_t length, unsigned flags);
ssize_t clinux_copy_file_range(int from, int to, size_t count);
int clinux_syncfs(int fd);
int clinux_pidfd_open(pid_t pid, unsigned flags);
int clinux_pidfd_send_signal(int pidfd, int signal);

int clinux_get_attribute(int fd, const char *name, void *value, size_t size);
int clinux_set_attribute(int fd, const char *name, const void *value, size_t size);
// Changes the mode of what an O_PATH descriptor stands for.
int clinux_chmod_path(int fd, mode_t mode);

// The mount id that is never used again while the machine runs (STATX_MNT_ID_UNIQUE), or the plain one on older kernels.
int clinux_mount_id(int fd, uint64_t *mount_id);

// The number that stands for the kind of file system.
int clinux_file_system_magic(int fd, uint32_t *magic);

// Credentials of the peer of a unix socket.
int clinux_peer_credentials(int socket, pid_t *pid, uid_t *uid, gid_t *gid);
// A pidfd of the peer (SO_PEERPIDFD), or -1 with ENOPROTOOPT where the kernel has none.
int clinux_peer_pidfd(int socket);

// Sends bytes and up to 4 descriptors with them.
ssize_t clinux_send_descriptors(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count);
// Receives bytes and up to 4 descriptors (close-on-exec); *descriptor_count is in: room, out: received.
ssize_t clinux_receive_descriptors(int socket, void *bytes, size_t count, int *descriptors, int *descriptor_count);

// What a child does between fork and exec; everything is prepared before the fork.
struct clinux_spawn {
    const char *path;
    char *const *arguments;
    char *const *environment;
    const int *descriptors;      // becomes 0, 1, 2 ... in the child
    int descriptor_count;
    int directory;               // a directory descriptor to start in, or -1
    int new_session;             // setsid instead of an own process group
    int detached;                // a child of the system: no pid, no pidfd, nothing to reap
    // A user namespace with the caller's own id, and in it mounts, network, processes and shared memory of its own. The
    // program has the capability to change its mounts. Not together with `detached`.
    int namespaces;
};
// Starts a program with exactly these descriptors, default signals and an own process group. Returns the pid and a pidfd.
int clinux_spawn(const struct clinux_spawn *spawn, pid_t *pid, int *pidfd);

int clinux_set_parent_death_signal(int signal);
int clinux_no_new_privileges(void);
int clinux_close_range(unsigned first, unsigned last, unsigned flags);
int clinux_wait_status_exited(int status);
int clinux_wait_status_code(int status);
int clinux_wait_status_signal(int status);

// Of the thread sanitizer's runtime, in builds for it: what was told to it with this address came before.
void __tsan_acquire(void *address);
