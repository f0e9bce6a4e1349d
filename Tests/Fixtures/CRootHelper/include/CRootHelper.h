// Calls of the kernel that only root may make and Swift's Glibc module does not show. All answer -1 with errno.
#pragma once
#include <sys/types.h>

// Namespaces of the calling process: a new one, or one that a descriptor stands for.
int croot_new_mounts(void);
int croot_new_network(void);
int croot_enter_network(int network);

// Nothing that is mounted from here on is seen in other mount namespaces.
int croot_make_mounts_private(void);
int croot_mount(const char *source, const char *target, const char *type, const char *options);
// `detached`: the name goes at once, the file system with its last user.
int croot_unmount(const char *target, int detached);

// A file in memory without a name.
int croot_memory_file(const char *name);
// Makes a loop device of a file; it goes with its last user. Returns its descriptor, and its number.
int croot_attach_loop(int image, int *number);
// Ends a file system as a power cut does: what it has not written is never written, and every call fails.
int croot_shut_down_file_system(int folder);
// Writes what is dirty in a part of a file, and waits for that; nothing is flushed.
int croot_write_out(int file, off_t offset, off_t length);
