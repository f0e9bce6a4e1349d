// What was open when the extension began: three sockets, /dev/null, the journal, its own folder of /proc, and nothing that
// leads outside.
#define _GNU_SOURCE
#include "Families.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { descriptors_max = 1024 };

static struct escape_verdict folders(const struct escape_scene *scene) {
    const char *name = strrchr(scene->secret, '/') + 1;
    for (int descriptor = 3; descriptor < descriptors_max; descriptor++) {
        struct stat status;
        if (fstat(descriptor, &status) == -1 || !S_ISDIR(status.st_mode)) continue;
        int file = openat(descriptor, name, O_RDONLY | O_CLOEXEC);
        if (file != -1) return escape_reading(file, "openat");
        struct statfs system;
        if (fstatfs(descriptor, &system) == 0 && system.f_type == PROC_SUPER_MAGIC) {
            int above = openat(descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (above == -1) continue;
            close(above);
            return escape_reached("goes up from its own folder of /proc");
        }
        return escape_reached("has a folder that was left open");
    }
    errno = EBADF;
    return escape_denied("fstat");
}
static struct escape_verdict files(const struct escape_scene *scene) {
    (void)scene;
    for (int descriptor = 3; descriptor < descriptors_max; descriptor++) {
        struct stat status;
        if (fstat(descriptor, &status) == -1) continue;
        // The lock of its container is a file without a byte.
        if (S_ISREG(status.st_mode) && status.st_size > 0) return escape_reached("has a file that was left open");
        if (S_ISBLK(status.st_mode)) return escape_reached("has a device that was left open");
    }
    errno = EBADF;
    return escape_denied("fstat");
}
static struct escape_verdict lock(const struct escape_scene *scene) {
    (void)scene;
    for (int descriptor = 3; descriptor < 16; descriptor++) {
        struct stat status;
        if (fstat(descriptor, &status) == -1 || !S_ISREG(status.st_mode)) continue;
        return escape_result(write(descriptor, "x", 1), "write", "wrote to the lock of its container");
    }
    return escape_held("has no lock");
}
static struct escape_verdict sockets(const struct escape_scene *scene) {
    (void)scene;
    int count = 0;
    for (int descriptor = 0; descriptor < descriptors_max; descriptor++) {
        struct stat status;
        if (fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode)) count++;
    }
    return count > 3 ? escape_reached("has a socket that was left open") : escape_held("has its own sockets only");
}
static struct escape_verdict input(const struct escape_scene *scene) {
    (void)scene;
    struct stat status;
    if (fstat(0, &status) == -1) return escape_denied("fstat");
    return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3) ? escape_held("its input is /dev/null")
                                                                      : escape_reached("its input is somebody's");
}
static struct escape_verdict working_folder(const struct escape_scene *scene) {
    char path[PATH_MAX];
    if (!getcwd(path, sizeof path)) return escape_denied("getcwd");
    // In a namespace of its own the same folder may have another name.
    struct stat here, home;
    if (stat(".", &here) == -1 || stat(scene->home, &home) == -1) return escape_denied("stat");
    return here.st_ino == home.st_ino && here.st_dev == home.st_dev ? escape_held("it starts at home")
                                                                    : escape_reached("it starts in somebody's folder");
}
static struct escape_verdict working_folder_list(const struct escape_scene *scene) {
    const char *name = strrchr(scene->secret, '/') + 1;
    return escape_reading(open(name, O_RDONLY | O_CLOEXEC), "open");
}

static const struct escape_probe probes[] = {
    {"descriptors.folders", folders, ENVIRONMENT, "uses a folder that was left open"},
    {"descriptors.files", files, ENVIRONMENT, "uses a file that was left open"},
    {"descriptors.sockets", sockets, ENVIRONMENT, "uses a socket that was left open"},
    {"descriptors.lock", lock, KERNEL, "writes to the lock of its container", 0,
     "the service opens it for reading; it is asked that nobody changes that"},
    {"descriptors.input", input, KERNEL, "reads somebody's input", 0, "the service gives /dev/null; it is asked that nobody changes that"},
    {"descriptors.working-folder", working_folder, KERNEL, "starts in a folder that is not its own", 0,
     "the launcher goes to its home with and without a sandbox; it is asked that nobody changes that"},
    {"descriptors.working-folder-file", working_folder_list, KERNEL, "reads a file in the folder where it starts", 0,
     "the launcher goes to its home with and without a sandbox; it is asked that nobody changes that"},
};
const struct escape_table escape_descriptors = ESCAPE_TABLE(probes);
