#define _GNU_SOURCE
#include "CRootHelper.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

// EXT4_IOC_SHUTDOWN, the same in XFS; 2 is "do not even write the log".
#define FILE_SYSTEM_SHUTDOWN _IOR('X', 125, uint32_t)
static const uint32_t shutdown_without_log = 2;

int croot_new_mounts(void) { return unshare(CLONE_NEWNS); }
int croot_new_network(void) { return unshare(CLONE_NEWNET); }
int croot_enter_network(int network) { return setns(network, CLONE_NEWNET); }

int croot_make_mounts_private(void) { return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL); }

int croot_mount(const char *source, const char *target, const char *type, const char *options) {
    return mount(source, target, type, MS_NOSUID | MS_NODEV, options);
}

int croot_unmount(const char *target, int detached) {
    return umount2(target, UMOUNT_NOFOLLOW | (detached ? MNT_DETACH : 0));
}

int croot_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

enum { tries_max = 64 };

int croot_attach_loop(int image, int *number) {
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control == -1) return -1;
    int device = -1;
    // Somebody else may take the free number first.
    for (int try = 0; try < tries_max; try++) {
        char path[32];
        *number = ioctl(control, LOOP_CTL_GET_FREE);
        if (*number < 0) break;
        snprintf(path, sizeof path, "/dev/loop%d", *number);
        device = open(path, O_RDWR | O_CLOEXEC);
        if (device == -1) break;
        struct loop_config config;
        memset(&config, 0, sizeof config);
        config.fd = (uint32_t)image;
        config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        if (ioctl(device, LOOP_CONFIGURE, &config) == 0) break;
        int failure = errno;
        close(device);
        device = -1;
        errno = failure;
        if (failure != EBUSY) break;
    }
    int failure = errno;
    close(control);
    errno = failure;
    return device;
}

int croot_shut_down_file_system(int folder) {
    uint32_t how = shutdown_without_log;
    return ioctl(folder, FILE_SYSTEM_SHUTDOWN, &how);
}

int croot_write_out(int file, off_t offset, off_t length) {
    return sync_file_range(file, offset, length, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}
