// Mode, owner, times and attributes of files by path, for programs that may change these by descriptor only: in the
// sandbox of extensions, where Landlock holds whoever opens a file but asks nothing about these calls.
//
// Each function first does what the C library's does. Where that is not permitted it opens the file, for which it needs
// the right to read or to write it, and changes what it has opened. A symbolic link cannot be opened, so nothing can be
// changed of one there.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define EXPORTED __attribute__((visibility("default")))

static int open_file(int folder, const char *path, int flags) {
    int how = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
    if (flags & AT_EMPTY_PATH && !*path) return fcntl(folder, F_DUPFD_CLOEXEC, 0);
    int file = openat(folder, path, how | O_RDONLY);
    if (file == -1 && errno == EACCES) file = openat(folder, path, how | O_WRONLY);
    if (file == -1 && errno == ELOOP) errno = EOPNOTSUPP;
    return file;
}

// Calls `change` with a descriptor where `result` is a refusal.
#define BY_DESCRIPTOR(result, folder, path, flags, change)             \
    do {                                                               \
        __typeof__(result) done = (result);                            \
        if (done != -1 || errno != EPERM) return done;                 \
        int file = open_file(folder, path, flags);                     \
        if (file == -1) return -1;                                     \
        done = (change);                                               \
        int number = errno;                                            \
        close(file);                                                   \
        errno = number;                                                \
        return done;                                                   \
    } while (0)

// MARK: Mode

static int change_mode(int folder, const char *path, mode_t mode) {
    BY_DESCRIPTOR((int)syscall(SYS_fchmodat, folder, path, mode), folder, path, 0, fchmod(file, mode));
}

EXPORTED int chmod(const char *path, mode_t mode) { return change_mode(AT_FDCWD, path, mode); }

EXPORTED int fchmodat(int folder, const char *path, mode_t mode, int flags) {
    if (flags & ~AT_SYMLINK_NOFOLLOW) {
        errno = EINVAL;
        return -1;
    }
    if (!(flags & AT_SYMLINK_NOFOLLOW)) return change_mode(folder, path, mode);
    int file = open_file(folder, path, flags);
    if (file == -1) return -1;
    int done = fchmod(file, mode), number = errno;
    close(file);
    errno = number;
    return done;
}

EXPORTED int lchmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW); }

// MARK: Owner

EXPORTED int fchownat(int folder, const char *path, uid_t user, gid_t group, int flags) {
    BY_DESCRIPTOR(
        (int)syscall(SYS_fchownat, folder, path, user, group, flags), folder, path, flags, fchown(file, user, group));
}

EXPORTED int chown(const char *path, uid_t user, gid_t group) { return fchownat(AT_FDCWD, path, user, group, 0); }

EXPORTED int lchown(const char *path, uid_t user, gid_t group) {
    return fchownat(AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW);
}

// MARK: Times

EXPORTED int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
    BY_DESCRIPTOR(
        (int)syscall(SYS_utimensat, folder, path, times, flags), folder, path, flags,
        (int)syscall(SYS_utimensat, file, NULL, times, 0));
}

static int change_times(int folder, const char *path, const struct timeval times[2], int flags) {
    if (!times) return utimensat(folder, path, NULL, flags);
    const struct timespec precise[2] = {
        {times[0].tv_sec, times[0].tv_usec * 1000}, {times[1].tv_sec, times[1].tv_usec * 1000}};
    return utimensat(folder, path, precise, flags);
}

EXPORTED int utimes(const char *path, const struct timeval times[2]) { return change_times(AT_FDCWD, path, times, 0); }

EXPORTED int lutimes(const char *path, const struct timeval times[2]) {
    return change_times(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

EXPORTED int futimesat(int folder, const char *path, const struct timeval times[2]) {
    return change_times(folder, path, times, 0);
}

EXPORTED int utime(const char *path, const struct utimbuf *times) {
    if (!times) return utimensat(AT_FDCWD, path, NULL, 0);
    const struct timespec precise[2] = {{times->actime, 0}, {times->modtime, 0}};
    return utimensat(AT_FDCWD, path, precise, 0);
}

// MARK: Extended attributes

enum { no_follow = AT_SYMLINK_NOFOLLOW };

EXPORTED ssize_t getxattr(const char *path, const char *name, void *value, size_t size) {
    BY_DESCRIPTOR(
        (ssize_t)syscall(SYS_getxattr, path, name, value, size), AT_FDCWD, path, 0, fgetxattr(file, name, value, size));
}

EXPORTED ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size) {
    BY_DESCRIPTOR(
        (ssize_t)syscall(SYS_lgetxattr, path, name, value, size), AT_FDCWD, path, no_follow,
        fgetxattr(file, name, value, size));
}

EXPORTED ssize_t listxattr(const char *path, char *list, size_t size) {
    BY_DESCRIPTOR((ssize_t)syscall(SYS_listxattr, path, list, size), AT_FDCWD, path, 0, flistxattr(file, list, size));
}

EXPORTED ssize_t llistxattr(const char *path, char *list, size_t size) {
    BY_DESCRIPTOR(
        (ssize_t)syscall(SYS_llistxattr, path, list, size), AT_FDCWD, path, no_follow, flistxattr(file, list, size));
}

EXPORTED int setxattr(const char *path, const char *name, const void *value, size_t size, int flags) {
    BY_DESCRIPTOR(
        (int)syscall(SYS_setxattr, path, name, value, size, flags), AT_FDCWD, path, 0,
        fsetxattr(file, name, value, size, flags));
}

EXPORTED int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags) {
    BY_DESCRIPTOR(
        (int)syscall(SYS_lsetxattr, path, name, value, size, flags), AT_FDCWD, path, no_follow,
        fsetxattr(file, name, value, size, flags));
}

EXPORTED int removexattr(const char *path, const char *name) {
    BY_DESCRIPTOR((int)syscall(SYS_removexattr, path, name), AT_FDCWD, path, 0, fremovexattr(file, name));
}

EXPORTED int lremovexattr(const char *path, const char *name) {
    BY_DESCRIPTOR((int)syscall(SYS_lremovexattr, path, name), AT_FDCWD, path, no_follow, fremovexattr(file, name));
}
