// Files outside by every route that a path or a descriptor may take.
#define _GNU_SOURCE
#include "Families.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct escape_verdict read_path(const char *path) { return escape_reading(open(path, O_RDONLY | O_CLOEXEC), "open"); }

static struct escape_verdict list(const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return escape_denied("opendir");
    int count = 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count > 2 ? escape_reached("listed names") : escape_held("there were no names");
}

static struct escape_verdict absolute(const struct escape_scene *scene) { return read_path(scene->secret); }
static struct escape_verdict parent(const struct escape_scene *scene) { return read_path(escape_upward(".", scene->secret)); }

static struct escape_verdict through_link(const struct escape_scene *scene) {
    const char *link = escape_path(scene->home, "link");
    if (symlink(scene->secret, link) == -1) return escape_denied("symlink");
    return read_path(link);
}

static struct escape_verdict through_folder_link(const struct escape_scene *scene) {
    const char *link = escape_path(scene->home, "folder");
    if (symlink(scene->outside, link) == -1) return escape_denied("symlink");
    return read_path(escape_path(link, strrchr(scene->secret, '/') + 1));
}

static struct escape_verdict proc_root(const struct escape_scene *scene) {
    return read_path(escape_path("/proc/self/root", scene->secret + 1));
}

static struct escape_verdict proc_thread_root(const struct escape_scene *scene) {
    return read_path(escape_path("/proc/thread-self/root", scene->secret + 1));
}

static struct escape_verdict proc_cwd(const struct escape_scene *scene) {
    return read_path(escape_upward("/proc/self/cwd", scene->secret));
}

static struct escape_verdict upward_of_descriptor(const struct escape_scene *scene, const char *form) {
    int folder = open(scene->home, O_PATH | O_CLOEXEC);
    if (folder == -1) return escape_denied("open O_PATH");
    char prefix[64];
    snprintf(prefix, sizeof prefix, form, folder);
    return read_path(escape_upward(prefix, scene->secret));
}

static struct escape_verdict proc_fd(const struct escape_scene *scene) { return upward_of_descriptor(scene, "/proc/self/fd/%d"); }
static struct escape_verdict dev_fd(const struct escape_scene *scene) { return upward_of_descriptor(scene, "/dev/fd/%d"); }

static struct escape_verdict relative_to_descriptor(const struct escape_scene *scene) {
    int folder = open(scene->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder == -1) return escape_denied("open");
    return escape_reading(openat(folder, escape_upward(".", scene->secret), O_RDONLY | O_CLOEXEC), "openat");
}

static struct escape_verdict openat2_absolute(const struct escape_scene *scene) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC};
    return escape_reading((int)syscall(SYS_openat2, AT_FDCWD, scene->secret, &how, sizeof how), "openat2");
}

static struct escape_verdict path_descriptor(const struct escape_scene *scene) {
    int file = open(scene->secret, O_PATH | O_CLOEXEC);
    if (file == -1) return escape_denied("open O_PATH");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return read_path(path);
}

static struct escape_verdict path_folder(const struct escape_scene *scene) {
    int folder = open(scene->outside, O_PATH | O_CLOEXEC);
    if (folder == -1) return escape_denied("open O_PATH");
    return escape_reading(openat(folder, strrchr(scene->secret, '/') + 1, O_RDONLY | O_CLOEXEC), "openat");
}

static struct escape_verdict chdir_outside(const struct escape_scene *scene) {
    if (chdir(scene->outside) == -1) return escape_denied("chdir");
    return read_path(strrchr(scene->secret, '/') + 1);
}

static struct escape_verdict handle(const struct escape_scene *scene) {
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } handle = {.head.handle_bytes = MAX_HANDLE_SZ};
    int mount;
    if (name_to_handle_at(AT_FDCWD, scene->secret, &handle.head, &mount, 0) == -1) return escape_denied("name_to_handle_at");
    int folder = open(scene->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder == -1) return escape_denied("open");
    return escape_reading(open_by_handle_at(folder, &handle.head, O_RDONLY | O_CLOEXEC), "open_by_handle_at");
}

static struct escape_verdict append(const struct escape_scene *scene) {
    int file = open(scene->secret, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file == -1) return escape_denied("open");
    return escape_result(write(file, "x", 1), "write", "wrote a byte");
}

static struct escape_verdict cut_while_opening(const struct escape_scene *scene) {
    return escape_result(open(scene->secret, O_RDONLY | O_TRUNC | O_CLOEXEC), "open O_TRUNC", "opened and cut it to 0");
}

static struct escape_verdict truncate_path(const struct escape_scene *scene) {
    return escape_result(syscall(SYS_truncate, scene->secret, 0L), "truncate", "cut it to 0");
}

static struct escape_verdict create(const struct escape_scene *scene) {
    int file = open(escape_path(scene->outside, "created"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return escape_result(file, "open O_CREAT", "made a file");
}

static struct escape_verdict nameless(const struct escape_scene *scene) {
    return escape_result(open(scene->outside, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), "open O_TMPFILE", "made a file without a name");
}

static struct escape_verdict nameless_linked(const struct escape_scene *scene) {
    int file = open(scene->home, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open O_TMPFILE");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return escape_result(
        linkat(AT_FDCWD, path, AT_FDCWD, escape_path(scene->outside, "linked"), AT_SYMLINK_FOLLOW), "linkat", "named it outside");
}

static struct escape_verdict make_folder(const struct escape_scene *scene) {
    return escape_result(mkdir(escape_path(scene->outside, "made"), 0700), "mkdir", "made a folder");
}
static struct escape_verdict make_fifo(const struct escape_scene *scene) {
    return escape_result(mkfifo(escape_path(scene->outside, "made"), 0600), "mknod", "made a FIFO");
}
static struct escape_verdict make_link(const struct escape_scene *scene) {
    return escape_result(symlink("x", escape_path(scene->outside, "made")), "symlink", "made a link");
}
static struct escape_verdict remove_file(const struct escape_scene *scene) {
    return escape_result(unlink(scene->secret), "unlink", "removed it");
}
static struct escape_verdict remove_folder(const struct escape_scene *scene) {
    return escape_result(rmdir(scene->folder), "rmdir", "removed a folder");
}
static struct escape_verdict rename_there(const struct escape_scene *scene) {
    return escape_result(rename(scene->secret, escape_path(scene->outside, "renamed")), "rename", "renamed it");
}
static struct escape_verdict list_outside(const struct escape_scene *scene) { return list(scene->outside); }

static struct escape_verdict list_root(const struct escape_scene *scene) {
    (void)scene;
    struct stat status;
    // An empty root of its own has nothing of the machine.
    return stat("/boot", &status) == -1 && stat("/home", &status) == -1 && stat("/var", &status) == -1
        ? escape_denied("stat")
        : list("/");
}

static struct escape_verdict write_fifo(const struct escape_scene *scene) {
    int file = open(scene->fifo, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (file == -1) return escape_denied("open");
    return escape_result(write(file, "x", 1), "write", "wrote to a FIFO");
}

static struct escape_verdict accounts(const struct escape_scene *scene) {
    (void)scene;
    return read_path("/etc/passwd");
}

static struct escape_verdict machine_name(const struct escape_scene *scene) {
    (void)scene;
    return read_path("/etc/hostname");
}

static struct escape_verdict hardware(const struct escape_scene *scene) {
    (void)scene;
    return list("/sys/class/net");
}

static struct escape_verdict new_terminal(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), "open", "opened a new terminal");
}

static struct escape_verdict full_device(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(open("/dev/full", O_RDWR | O_CLOEXEC), "open", "opened a device");
}

static struct escape_verdict create_in(const char *folder) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/escape-%ld", folder, (long)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open O_CREAT");
    unlink(path);
    return escape_reached("made a file");
}

static struct escape_verdict common_temporary(const struct escape_scene *scene) {
    (void)scene;
    return create_in("/tmp");
}
static struct escape_verdict common_memory(const struct escape_scene *scene) {
    (void)scene;
    return create_in("/dev/shm");
}

static struct escape_verdict secret_of_library_call(const struct escape_scene *scene) {
    char *resolved = realpath(scene->secret, NULL);
    if (!resolved) return escape_denied("realpath");
    FILE *file = fopen(resolved, "r");
    if (!file) return escape_denied("fopen");
    return escape_reached("opened it");
}

static const struct escape_probe probes[] = {
    {"paths.absolute", absolute, LANDLOCK | NAMESPACES, "reads a file outside by its path"},
    {"paths.parent", parent, LANDLOCK | NAMESPACES, "reads it by way of .. above its home"},
    {"paths.library-call", secret_of_library_call, LANDLOCK | NAMESPACES, "reads it by realpath and fopen"},
    {"paths.symbolic-link", through_link, LANDLOCK | NAMESPACES, "reads it through a link in its home"},
    {"paths.linked-folder", through_folder_link, LANDLOCK | NAMESPACES, "reads it below a link to its folder"},
    {"paths.proc-root", proc_root, LANDLOCK | NAMESPACES, "reads it below /proc/self/root"},
    {"paths.proc-thread-root", proc_thread_root, LANDLOCK | NAMESPACES, "reads it below /proc/thread-self/root"},
    {"paths.proc-cwd", proc_cwd, LANDLOCK | NAMESPACES, "reads it above /proc/self/cwd"},
    {"paths.proc-fd", proc_fd, LANDLOCK | NAMESPACES, "reads it above a descriptor in /proc/self/fd"},
    {"paths.dev-fd", dev_fd, LANDLOCK | NAMESPACES, "reads it above a descriptor in /dev/fd"},
    {"paths.openat", relative_to_descriptor, LANDLOCK | NAMESPACES, "reads it above a descriptor of its home"},
    {"paths.openat2", openat2_absolute, LANDLOCK | SECCOMP | NAMESPACES, "reads it by openat2"},
    {"paths.o-path", path_descriptor, LANDLOCK | NAMESPACES, "opens it with O_PATH, then again for reading"},
    {"paths.o-path-folder", path_folder, LANDLOCK | NAMESPACES, "reads it below an O_PATH descriptor of its folder"},
    {"paths.chdir", chdir_outside, LANDLOCK | NAMESPACES, "goes to its folder and reads it"},
    {"paths.file-handle", handle, SECCOMP | KERNEL, "reads it by a file handle", 0,
     "only root opens by handle; a user namespace must not become a way around that"},
    {"paths.append", append, LANDLOCK | NAMESPACES, "appends to a file outside"},
    {"paths.open-truncate", cut_while_opening, LANDLOCK | NAMESPACES, "cuts it to 0 while it opens it"},
    {"paths.truncate", truncate_path, LANDLOCK | NAMESPACES, "cuts it to 0 by its path", .landlock = 3},
    {"paths.create", create, LANDLOCK | NAMESPACES, "makes a file outside"},
    {"paths.tmpfile", nameless, LANDLOCK | NAMESPACES, "makes a file without a name outside"},
    {"paths.tmpfile-link", nameless_linked, LANDLOCK | NAMESPACES, "names outside what it made without a name at home"},
    {"paths.mkdir", make_folder, LANDLOCK | NAMESPACES, "makes a folder outside"},
    {"paths.mkfifo", make_fifo, LANDLOCK | NAMESPACES, "makes a FIFO outside"},
    {"paths.symlink", make_link, LANDLOCK | NAMESPACES, "makes a link outside"},
    {"paths.unlink", remove_file, LANDLOCK | NAMESPACES, "removes a file outside"},
    {"paths.rmdir", remove_folder, LANDLOCK | NAMESPACES, "removes a folder outside"},
    {"paths.rename", rename_there, LANDLOCK | NAMESPACES, "renames a file outside"},
    {"paths.list", list_outside, LANDLOCK | NAMESPACES, "lists a folder outside"},
    {"paths.list-root", list_root, LANDLOCK | NAMESPACES, "lists the root folder"},
    {"paths.fifo", write_fifo, LANDLOCK | NAMESPACES, "writes to a FIFO outside"},
    {"paths.accounts", accounts, LANDLOCK | NAMESPACES, "reads /etc/passwd"},
    {"paths.machine", machine_name, LANDLOCK | NAMESPACES, "reads /etc/hostname"},
    {"paths.hardware", hardware, LANDLOCK | NAMESPACES, "lists /sys/class/net"},
    {"paths.terminal", new_terminal, LANDLOCK | NAMESPACES, "opens a new terminal"},
    {"paths.device", full_device, LANDLOCK | NAMESPACES, "opens /dev/full"},
    {"paths.common-temporary", common_temporary, LANDLOCK | NAMESPACES, "makes a file in /tmp"},
    {"paths.common-memory", common_memory, LANDLOCK | NAMESPACES, "makes a file in /dev/shm"},
};
const struct escape_table escape_paths = ESCAPE_TABLE(probes);
