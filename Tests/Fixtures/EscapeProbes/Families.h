// The families of probes that this package brings, and what several of them need.
#pragma once
#include "EscapeProbe.h"

#include <limits.h>

#define LANDLOCK ESCAPE_LANDLOCK
#define SECCOMP ESCAPE_SECCOMP
#define NAMESPACES ESCAPE_NAMESPACES
#define STAGE_2 ESCAPE_STAGE_2
#define LIMITS ESCAPE_LIMITS
#define ENVIRONMENT ESCAPE_ENVIRONMENT
#define KERNEL ESCAPE_KERNEL
#define BY_LANDLOCK ESCAPE_BY_LANDLOCK

extern const struct escape_table escape_paths, escape_links, escape_attributes, escape_existence, escape_device,
    escape_processes, escape_signals, escape_sockets, escape_kernel_calls, escape_namespaces, escape_execution,
    escape_loader, escape_memory, escape_storage, escape_descriptors, escape_priorities, escape_bypasses;

// Calls that have a number on some processors only, and those that are younger than the C library.
#include <sys/syscall.h>
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_removexattrat
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

// Answers of `refusal`, for settings below /proc/sys: why a probe gets nowhere where a setting is above the greatest that
// lets it through. A setting that is not there refuses nothing.
const char *escape_refusal(const char *setting, long greatest);
// The same where user namespaces with their powers cannot be had.
const char *escape_no_user_namespaces(void);

// A path made of two parts, in one of a few buffers that take turns.
const char *escape_path(const char *folder, const char *name);
// The same file by the way of the root folder of the given path, "../../..".
const char *escape_upward(const char *prefix, const char *path);
// Copies the extension's own executable into its home; the path, or NULL with errno.
const char *escape_copy_of_itself(const struct escape_scene *scene);
// The path of the executable as it was given to execve.
const char *escape_own_executable(void);
// Writes text to the standard output, whole.
void escape_print(const char *text);

// Said by a program that the extension managed to execute.
#define ESCAPE_EXECUTED_VARIABLE "ESCAPE_EXECUTED"
#define ESCAPE_EXECUTED_LINE "escape-probe: reached executed a program\n"
