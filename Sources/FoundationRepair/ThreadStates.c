// What libdispatch asks about its threads, in the sandbox of extensions.
//
// Once a second libdispatch looks which threads of a queue with work left are running, to start more of them. It reads
// /proc/<thread>/stat, and ends the process by a signal where it cannot. In the sandbox /proc/self is all that may be read,
// and a thread has a folder of the same content there.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

// The number in "/proc/<number>/stat"; 0 for any other path.
static int thread_of(const char *path) {
    int thread = 0, end = 0;
    if (strncmp(path, "/proc/", 6) != 0 || sscanf(path, "/proc/%9d/stat%n", &thread, &end) != 1) return 0;
    return end > 0 && !path[end] ? thread : 0;
}

static int open_path(const char *path, int flags, mode_t mode) {
    int file = openat(AT_FDCWD, path, flags, mode);
    if (file != -1 || errno != EACCES) return file;
    int thread = thread_of(path);
    if (thread > 0) {
        char own[48];
        snprintf(own, sizeof own, "/proc/self/task/%d/stat", thread);
        file = openat(AT_FDCWD, own, flags, mode);
        // The number of another process is refused as it was.
        if (file == -1) errno = EACCES;
    }
    return file;
}

#define OPEN(name)                                                \
    EXPORTED int name(const char *path, int flags, ...) {         \
        mode_t mode = 0;                                          \
        if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {\
            va_list more;                                         \
            va_start(more, flags);                                \
            mode = va_arg(more, mode_t);                          \
            va_end(more);                                         \
        }                                                         \
        return open_path(path, flags, mode);                      \
    }

OPEN(open)
OPEN(open64)
