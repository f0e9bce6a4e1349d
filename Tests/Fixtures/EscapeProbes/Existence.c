// What is outside is not even to be asked for: whether a file is there, how large it is, when it changed.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static struct escape_verdict by_stat(const struct escape_scene *scene) {
    struct stat status;
    return escape_result(lstat(scene->secret, &status), "lstat", "knows size and times");
}
static struct escape_verdict by_statx(const struct escape_scene *scene) {
    struct statx status;
    return escape_result(statx(AT_FDCWD, scene->secret, 0, STATX_BASIC_STATS, &status), "statx", "knows size and times");
}
static struct escape_verdict by_access(const struct escape_scene *scene) {
    return escape_result(faccessat(AT_FDCWD, scene->secret, F_OK, 0), "faccessat", "knows that it is there");
}
static struct escape_verdict by_faccessat2(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_faccessat2, AT_FDCWD, scene->secret, R_OK, AT_EACCESS), "faccessat2", "knows that it is there");
}
static struct escape_verdict by_readlink(const struct escape_scene *scene) {
    char target[PATH_MAX];
    return escape_result(readlink(scene->link, target, sizeof target), "readlink", "knows where a link leads");
}
static struct escape_verdict by_path_descriptor(const struct escape_scene *scene) {
    int file = open(scene->secret, O_PATH | O_CLOEXEC);
    struct stat status;
    if (file == -1) return escape_denied("open O_PATH");
    return escape_result(fstat(file, &status), "fstat", "knows size and times");
}
static struct escape_verdict by_chdir(const struct escape_scene *scene) {
    return escape_result(chdir(scene->outside), "chdir", "knows that the folder is there");
}
static struct escape_verdict by_statfs(const struct escape_scene *scene) {
    struct statfs status;
    return escape_result(statfs(scene->outside, &status), "statfs", "knows the file system");
}
static struct escape_verdict by_error(const struct escape_scene *scene) {
    // Two errors for what is there and what is not would tell them apart.
    int there = open(scene->secret, O_RDONLY) == -1 ? errno : 0;
    int missing = open(escape_path(scene->outside, "missing"), O_RDONLY) == -1 ? errno : 0;
    errno = there;
    return there == missing ? escape_denied("open") : escape_reached("knows by the error that it is there");
}
static struct escape_verdict by_handle(const struct escape_scene *scene) {
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    return escape_result(
        name_to_handle_at(AT_FDCWD, scene->secret, &handle.head, &mount, 0), "name_to_handle_at", "knows its inode");
}
static struct escape_verdict by_inotify(const struct escape_scene *scene) {
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch == -1) return escape_denied("inotify_init1");
    return escape_result(inotify_add_watch(watch, scene->outside, IN_ALL_EVENTS), "inotify_add_watch", "watches a folder");
}
static struct escape_verdict by_fanotify(const struct escape_scene *scene) {
    int watch = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_CLOEXEC, O_RDONLY);
    if (watch == -1) return escape_denied("fanotify_init");
    return escape_result(
        fanotify_mark(watch, FAN_MARK_ADD, FAN_OPEN | FAN_MODIFY, AT_FDCWD, scene->outside), "fanotify_mark", "watches a folder");
}
static struct escape_verdict by_socket_name(const struct escape_scene *scene) {
    struct stat status;
    return escape_result(stat(scene->service_socket, &status), "stat", "knows the service's socket");
}
static struct escape_verdict of_other_app(const struct escape_scene *scene) {
    struct stat status;
    return escape_result(stat(scene->other_group, &status), "stat", "knows what else is installed");
}
static struct escape_verdict of_mounts(const struct escape_scene *scene) {
    (void)scene;
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    if (!mounts) return escape_denied("open");
    char line[4096];
    int others = 0;
    while (fgets(line, sizeof line, mounts)) {
        char root[1024], place[1024];
        // Those of the machine that are not the extension's own: it has neither of them.
        if (sscanf(line, "%*d %*d %*s %1023s %1023s", root, place) == 2 && place[0] == '/' && place[1] == 's') others++;
    }
    fclose(mounts);
    return others > 1 ? escape_reached("knows the machine's file systems") : escape_held("sees its own folders only");
}

static const struct escape_probe probes[] = {
    {"existence.stat", by_stat, NAMESPACES, "asks for a file outside by lstat"},
    {"existence.statx", by_statx, NAMESPACES, "asks by statx"},
    {"existence.access", by_access, NAMESPACES, "asks by faccessat"},
    {"existence.faccessat2", by_faccessat2, NAMESPACES, "asks by faccessat2"},
    {"existence.readlink", by_readlink, NAMESPACES, "reads a link outside"},
    {"existence.o-path", by_path_descriptor, NAMESPACES, "asks an O_PATH descriptor"},
    {"existence.chdir", by_chdir, NAMESPACES, "goes to a folder outside"},
    {"existence.statfs", by_statfs, NAMESPACES, "asks for the file system of a folder outside"},
    {"existence.error", by_error, NAMESPACES, "compares the errors for a file outside and a missing one"},
    {"existence.handle", by_handle, SECCOMP | NAMESPACES, "asks for a file handle"},
    {"existence.inotify", by_inotify, SECCOMP | NAMESPACES, "watches a folder outside by inotify"},
    {"existence.fanotify", by_fanotify, SECCOMP | NAMESPACES, "watches a folder outside by fanotify"},
    {"existence.socket", by_socket_name, NAMESPACES, "asks for the service's socket"},
    // Files are moved between containers, for which the kernel wants them in one mount, and Landlock hides no names.
    {"existence.other-app", of_other_app, 0, "asks for another app's container by its name", .varies = NAMESPACES},
    {"existence.mounts", of_mounts, NAMESPACES, "reads which file systems are mounted"},
};
const struct escape_table escape_existence = ESCAPE_TABLE(probes);
