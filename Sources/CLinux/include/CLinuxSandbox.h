// Calls of Linux that close a process off, which libc does not have: thin wrappers, no policy.
#pragma once
#include <stddef.h>
#include <stdint.h>

// The version of the kernel's Landlock, or -1 where it has none.
int clinux_landlock_version(void);
// A descriptor of a new ruleset.
int clinux_landlock_create(uint64_t files, uint64_t network, uint64_t scopes);
int clinux_landlock_allow(int ruleset, int folder, uint64_t rights);
int clinux_landlock_restrict(int ruleset, unsigned flags);

// Installs a filter of system calls: instructions of 8 bytes. 1 of `flags` is for all threads.
int clinux_seccomp_filter(const void *program, size_t bytes, unsigned flags);
// A filter that refuses to start programs and to ask for more filters and rulesets, and allows everything else.
int clinux_seccomp_second_stage(unsigned flags);

// From now on the process has no capability, and cannot get one.
int clinux_drop_capabilities(void);
// Level 0 to 7 of best effort for what the process reads and writes.
int clinux_set_disk_level(int level);
// RLIMIT_* by number, soft and hard.
int clinux_set_limit(int resource, uint64_t value);
// A descriptor that stands for a place and can do nothing to it (O_PATH).
int clinux_open_place(const char *path);
// A file without a name, in memory, close-on-exec.
int clinux_memory_file(const char *name);
// Whether the other end of a socket is closed.
int clinux_is_hung_up(int socket);

// What may not be done with a mount.
enum {
    clinux_mount_read_only = 1 << 0,
    clinux_mount_no_devices = 1 << 1,
    clinux_mount_no_programs = 1 << 2,
};
// A copy of the mounts below an O_PATH descriptor as a detached tree; never with set-user-id.
int clinux_mount_copy(int source, int attributes);
// Puts a detached tree in place, relative to the current folder.
int clinux_mount_place(int tree, const char *path);
// An empty tmpfs with room for names only.
int clinux_mount_empty(const char *path);
int clinux_mount_make_read_only(const char *path);
// /proc of the own process namespace, with processes and nothing else.
int clinux_mount_processes(const char *path);
// Makes the current folder, a mount, the root, and lets go of the old one.
int clinux_enter_root(void);
