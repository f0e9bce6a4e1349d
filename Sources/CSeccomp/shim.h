#pragma once
#include <seccomp.h>

// Macros that Swift does not see.
static const unsigned cseccomp_allow = SCMP_ACT_ALLOW;
static const int cseccomp_unknown_call = __NR_SCMP_ERROR;
static inline unsigned cseccomp_refuse(unsigned number) { return SCMP_ACT_ERRNO(number); }
