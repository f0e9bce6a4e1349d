// What is outside is not even to be asked for: whether a file is there, how large it is, when it changed.
#define _GNU_SOURCE
#include "Families.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
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
// Whether an open folder, which is closed, has a name that begins so.
static int is_listed(int folder, const char *beginning) {
    DIR *names = folder == -1 ? NULL : fdopendir(folder);
    if (!names) {
        if (folder != -1) close(folder);
        return 0;
    }
    int found = 0;
    for (struct dirent *entry; (entry = readdir(names));) found |= !strncmp(entry->d_name, beginning, strlen(beginning));
    closedir(names);
    return found;
}

// What some calls answer for a path, in one number.
static unsigned long answers_for(const char *path) {
    struct stat status;
    unsigned long answers = lstat(path, &status) == -1 ? (unsigned long)errno : 0;
    answers = answers << 8 | (faccessat(AT_FDCWD, path, F_OK, 0) == -1 ? (unsigned long)errno : 0);
    static const int flags[] = {O_PATH | O_CLOEXEC, O_RDONLY | O_DIRECTORY | O_CLOEXEC};
    for (int index = 0; index < 2; index++) {
        int file = open(path, flags[index]);
        answers = answers << 8 | (file == -1 ? (unsigned long)errno : 0);
        if (file != -1) close(file);
    }
    return answers;
}

// Whether a name that was put together from what is known has other answers than one that nobody has.
static int is_told(const char *folder, const char *identifier, const char *ending) {
    char name[NAME_MAX + 1], nobody[NAME_MAX + 1];
    snprintf(name, sizeof name, "%s%s", identifier, ending);
    snprintf(nobody, sizeof nobody, "org.example.nobody%s", ending);
    return answers_for(escape_path(folder, name)) != answers_for(escape_path(folder, nobody));
}

// Looks for another's container beside its own.
static int has_neighbour(const char *own, const char *identifier) {
    const char *name = strrchr(own, '/') + 1, *ending = strchr(name, '~');
    char folder[PATH_MAX], link[64];
    snprintf(folder, sizeof folder, "%.*s", (int)(name - own - 1), own);
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int inside = open(own, flags), place = open(folder, O_PATH | O_CLOEXEC);
    snprintf(link, sizeof link, "/proc/self/fd/%d", place);
    int found = is_listed(open(folder, flags), identifier) | is_listed(openat(inside, "..", flags), identifier)
        | is_listed(openat(place, ".", flags), identifier) | is_listed(open(link, flags), identifier);
    if (chdir(own) == 0)
        found |= is_listed(open("..", flags), identifier) | is_listed(open("/proc/self/cwd/..", flags), identifier);
    for (int index = 0; index < 3; index++) {
        const char *from = (const char *[]){folder, escape_path(own, ".."), link}[index];
        found |= is_told(from, identifier, "") | (ending && is_told(from, identifier, ending));
    }
    if (inside != -1) close(inside);
    if (place != -1) close(place);
    return found;
}

// Whether what the kernel shows of this process names it.
static int is_shown(const char *identifier) {
    static char text[1 << 16];
    int file = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    ssize_t count = 0, size = 0;
    while (file != -1 && size < (ssize_t)sizeof text - 1 && (count = read(file, text + size, sizeof text - 1 - (size_t)size)) > 0)
        size += count;
    if (file != -1) close(file);
    text[size] = 0;
    int found = strstr(text, identifier) != NULL;
    for (int descriptor = 0; descriptor < 64; descriptor++) {
        char number[16], target[PATH_MAX];
        snprintf(number, sizeof number, "%d", descriptor);
        ssize_t length = readlink(escape_path("/proc/self/fd", number), target, sizeof target - 1);
        if (length == -1) continue;
        target[length] = 0;
        found |= strstr(target, identifier) != NULL;
    }
    return found;
}

static struct escape_verdict of_other_app(const struct escape_scene *scene) {
    char own[PATH_MAX];
    snprintf(own, sizeof own, "%.*s", (int)(strrchr(scene->home, '/') - scene->home), scene->home);
    int found = has_neighbour(scene->group, scene->other_group_identifier)
        | has_neighbour(own, scene->other_extension_identifier) | is_shown(scene->other_group_identifier)
        | is_shown(scene->other_extension_identifier);
    return found ? escape_reached("knows what else is installed") : escape_held("finds nothing of the other app");
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
    // Landlock hides no names, and all containers are in one mount: what holds it is that nobody can say the other's name.
    {"existence.other-app", of_other_app, LANDLOCK | NAMESPACES, "looks for another app's container by its identifiers"},
    {"existence.mounts", of_mounts, NAMESPACES, "reads which file systems are mounted"},
};
const struct escape_table escape_existence = ESCAPE_TABLE(probes);
