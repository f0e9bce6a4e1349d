// Modes, owners, times and extended attributes, which Landlock does not govern: of files outside, and of the bundle, which
// the extension may open for reading and which belongs to its user.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>

static const char attribute[] = "user.escape";

static int path_descriptor(const char *path) { return open(path, O_PATH | O_CLOEXEC); }

static struct escape_verdict changed(long result, const char *call) {
    if (result == -1 && errno == ENOSYS) return escape_denied(call);
    return escape_result(result, call, "changed it");
}

#ifdef SYS_chmod
static struct escape_verdict chmod_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_chmod, scene->secret, 0644), "chmod");
}
static struct escape_verdict chown_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_chown, scene->secret, getuid(), getgid()), "chown");
}
static struct escape_verdict utime_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_utime, scene->secret, NULL), "utime");
}
static struct escape_verdict utimes_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_utimes, scene->secret, NULL), "utimes");
}
#endif
static struct escape_verdict fchmodat_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_fchmodat, AT_FDCWD, scene->secret, 0644), "fchmodat");
}
static struct escape_verdict fchmodat2_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_fchmodat2, AT_FDCWD, scene->secret, 0644, 0), "fchmodat2");
}
static struct escape_verdict fchmodat2_descriptor(const struct escape_scene *scene) {
    int file = path_descriptor(scene->secret);
    if (file == -1) return escape_denied("open O_PATH");
    return changed(syscall(SYS_fchmodat2, file, "", 0644, AT_EMPTY_PATH), "fchmodat2 AT_EMPTY_PATH");
}
static struct escape_verdict chmod_proc(const struct escape_scene *scene) {
    int file = path_descriptor(scene->secret);
    if (file == -1) return escape_denied("open O_PATH");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return changed(syscall(SYS_fchmodat, AT_FDCWD, path, 0644), "fchmodat");
}
static struct escape_verdict chmod_library(const struct escape_scene *scene) {
    return changed(chmod(scene->secret, 0644), "chmod of the C library");
}
static struct escape_verdict fchownat_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_fchownat, AT_FDCWD, scene->secret, getuid(), getgid(), 0), "fchownat");
}
static struct escape_verdict fchownat_descriptor(const struct escape_scene *scene) {
    int file = path_descriptor(scene->secret);
    if (file == -1) return escape_denied("open O_PATH");
    return changed(syscall(SYS_fchownat, file, "", getuid(), getgid(), AT_EMPTY_PATH), "fchownat AT_EMPTY_PATH");
}
static struct escape_verdict chown_library(const struct escape_scene *scene) {
    return changed(chown(scene->secret, getuid(), getgid()), "chown of the C library");
}
static struct escape_verdict utimensat_path(const struct escape_scene *scene) {
    return changed(syscall(SYS_utimensat, AT_FDCWD, scene->secret, NULL, 0), "utimensat");
}
static struct escape_verdict utimensat_descriptor(const struct escape_scene *scene) {
    int file = path_descriptor(scene->secret);
    if (file == -1) return escape_denied("open O_PATH");
    return changed(syscall(SYS_utimensat, file, "", NULL, AT_EMPTY_PATH), "utimensat AT_EMPTY_PATH");
}
static struct escape_verdict utimes_library(const struct escape_scene *scene) {
    return changed(utimensat(AT_FDCWD, scene->secret, NULL, 0), "utimensat of the C library");
}
static struct escape_verdict set_attribute(const struct escape_scene *scene) {
    return changed(syscall(SYS_setxattr, scene->secret, attribute, "x", 1L, 0), "setxattr");
}
static struct escape_verdict set_attribute_of_link(const struct escape_scene *scene) {
    return changed(syscall(SYS_lsetxattr, scene->secret, attribute, "x", 1L, 0), "lsetxattr");
}
static struct escape_verdict set_attribute_at(const struct escape_scene *scene) {
    struct {
        unsigned long value;
        unsigned size, flags;
    } arguments = {(unsigned long)"x", 1, 0};
    return changed(
        syscall(SYS_setxattrat, AT_FDCWD, scene->secret, 0, attribute, &arguments, sizeof arguments), "setxattrat");
}
static struct escape_verdict remove_attribute(const struct escape_scene *scene) {
    return changed(syscall(SYS_removexattr, scene->secret, "user.mark"), "removexattr");
}
static struct escape_verdict get_attribute(const struct escape_scene *scene) {
    char value[8];
    return escape_result(syscall(SYS_getxattr, scene->secret, "user.mark", value, sizeof value), "getxattr", "read its attribute");
}
static struct escape_verdict set_attribute_library(const struct escape_scene *scene) {
    return changed(setxattr(scene->secret, attribute, "x", 1, 0), "setxattr of the C library");
}

// The bundle: opened for reading, changed by the descriptor.

static int bundle(void) { return open(escape_own_executable(), O_RDONLY | O_CLOEXEC); }

static struct escape_verdict chmod_bundle(const struct escape_scene *scene) {
    (void)scene;
    int file = bundle();
    if (file == -1) return escape_denied("open");
    return changed(syscall(SYS_fchmod, file, 0700), "fchmod");
}
static struct escape_verdict chown_bundle(const struct escape_scene *scene) {
    (void)scene;
    int file = bundle();
    if (file == -1) return escape_denied("open");
    return changed(syscall(SYS_fchown, file, getuid(), getgid()), "fchown");
}
static struct escape_verdict touch_bundle(const struct escape_scene *scene) {
    (void)scene;
    int file = bundle();
    if (file == -1) return escape_denied("open");
    return changed(syscall(SYS_utimensat, file, NULL, NULL, 0), "futimens");
}
static struct escape_verdict mark_bundle(const struct escape_scene *scene) {
    (void)scene;
    int file = bundle();
    if (file == -1) return escape_denied("open");
    return changed(syscall(SYS_fsetxattr, file, attribute, "x", 1L, 0), "fsetxattr");
}
static struct escape_verdict flag_bundle(const struct escape_scene *scene) {
    (void)scene;
    int file = bundle();
    if (file == -1) return escape_denied("open");
    int flags = 0;
    if (ioctl(file, FS_IOC_GETFLAGS, &flags) == -1) return escape_denied("ioctl FS_IOC_GETFLAGS");
    flags ^= FS_NODUMP_FL;
    return changed(ioctl(file, FS_IOC_SETFLAGS, &flags), "ioctl FS_IOC_SETFLAGS");
}

static const struct escape_probe probes[] = {
#ifdef SYS_chmod
    {"attributes.chmod", chmod_path, SECCOMP | NAMESPACES, "changes the mode of a file outside"},
    {"attributes.chown", chown_path, SECCOMP | NAMESPACES, "sets the owner of a file outside"},
    {"attributes.utime", utime_path, SECCOMP | NAMESPACES, "sets the times of a file outside"},
    {"attributes.utimes", utimes_path, SECCOMP | NAMESPACES, "the same by utimes"},
#endif
    {"attributes.fchmodat", fchmodat_path, SECCOMP | NAMESPACES, "changes the mode by fchmodat"},
    {"attributes.fchmodat2", fchmodat2_path, SECCOMP | NAMESPACES, "changes the mode by fchmodat2"},
    {"attributes.fchmodat2-descriptor", fchmodat2_descriptor, SECCOMP | NAMESPACES, "changes the mode by an O_PATH descriptor"},
    {"attributes.chmod-proc", chmod_proc, SECCOMP | NAMESPACES, "changes the mode by /proc/self/fd"},
    {"attributes.chmod-library", chmod_library, NAMESPACES, "changes the mode by the C library, repaired or not", 0, NULL,
     LANDLOCK | SECCOMP},
    {"attributes.fchownat", fchownat_path, SECCOMP | NAMESPACES, "sets the owner by fchownat"},
    {"attributes.fchownat-descriptor", fchownat_descriptor, SECCOMP | NAMESPACES, "sets the owner by an O_PATH descriptor"},
    {"attributes.chown-library", chown_library, NAMESPACES, "sets the owner by the C library", 0, NULL, LANDLOCK | SECCOMP},
    {"attributes.utimensat", utimensat_path, SECCOMP | NAMESPACES, "sets the times by utimensat"},
    {"attributes.utimensat-descriptor", utimensat_descriptor, SECCOMP | NAMESPACES, "sets the times by an O_PATH descriptor"},
    {"attributes.utimens-library", utimes_library, NAMESPACES, "sets the times by the C library", 0, NULL, LANDLOCK | SECCOMP},
    {"attributes.setxattr", set_attribute, SECCOMP | NAMESPACES, "sets an attribute of a file outside"},
    {"attributes.lsetxattr", set_attribute_of_link, SECCOMP | NAMESPACES, "the same by lsetxattr"},
    {"attributes.setxattrat", set_attribute_at, SECCOMP | NAMESPACES, "the same by setxattrat"},
    {"attributes.setxattr-library", set_attribute_library, NAMESPACES, "the same by the C library", 0, NULL, LANDLOCK | SECCOMP},
    {"attributes.removexattr", remove_attribute, SECCOMP | NAMESPACES, "removes an attribute of a file outside"},
    {"attributes.getxattr", get_attribute, SECCOMP | NAMESPACES, "reads an attribute of a file outside"},
    {"attributes.bundle-mode", chmod_bundle, NAMESPACES, "changes the mode of its own code by a descriptor"},
    {"attributes.bundle-owner", chown_bundle, NAMESPACES, "sets the owner of its own code by a descriptor"},
    {"attributes.bundle-times", touch_bundle, NAMESPACES, "sets the times of its own code by a descriptor"},
    {"attributes.bundle-attribute", mark_bundle, NAMESPACES, "sets an attribute of its own code by a descriptor"},
    {"attributes.bundle-flags", flag_bundle, SECCOMP | NAMESPACES, "sets a flag of its own code by ioctl"},
};
const struct escape_table escape_attributes = ESCAPE_TABLE(probes);
