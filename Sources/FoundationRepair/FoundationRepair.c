// Stands in the way of Foundation's functions. Each is a jump to an address in a table; arguments of all kinds stay where
// they are, so that functions of Swift can be taken over without knowing how they are called.
#define _GNU_SOURCE
#include "FoundationRepair.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define REPLACE_ITEM_AT                                                                                                 \
    "$s20FoundationEssentials11FileManagerC0A0E13replaceItemAt_04withfG006backupF4Name7optionsAA3URLVSgAJ_AJSSSgAC0F18" \
    "ReplacementOptionsVtKF"
#define REPLACE_ITEM                                                                                                    \
    "$s20FoundationEssentials11FileManagerC0A0E11replaceItem2at04withF2At06backupF4Name7optionsAA3URLVSgAK_AKSSSgAC0F1" \
    "8ReplacementOptionsVtKF"
#define READ_DATA "$s20FoundationEssentials4DataV10contentsOf7optionsAcA3URLVh_AC14ReadingOptionsVtKcfC"

static const char *const names[foundation_repair_count] = {
    REPLACE_ITEM_AT,
    REPLACE_ITEM,
    READ_DATA,
    "CFPreferencesCopyAppValue",
    "CFPreferencesSetAppValue",
    "CFPreferencesCopyMultiple",
    "CFPreferencesAppSynchronize",
};

__attribute__((visibility("hidden"))) void *foundation_repair_targets[foundation_repair_count];

// The function that would be called if this library were not there.
static void *find(unsigned index) {
    void *found = dlsym(RTLD_NEXT, names[index]);
    if (found) return found;
    // A program that loads Foundation while it runs.
    void *library = dlopen("libFoundation.so", RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, names[index]) : NULL;
}

// Called by the jumps below for what was not there at the start.
__attribute__((visibility("hidden"), used)) void *foundation_repair_find(unsigned index) {
    void *found = find(index);
    if (!found) {
        fprintf(stderr, "libFoundationRepair.so: Foundation's %s was not found\n", names[index]);
        abort();
    }
    foundation_repair_targets[index] = found;
    return found;
}

static void look_up(void) {
    static int is_done;
    if (is_done) return;
    is_done = 1;
    for (unsigned index = 0; index < foundation_repair_count; index++) foundation_repair_targets[index] = find(index);
}

// Constructors run while the process has one thread.
__attribute__((constructor)) static void start(void) { look_up(); }

__attribute__((visibility("default"))) void **foundation_repair_table(unsigned version) {
    // The caller's constructor may run before ours.
    look_up();
    return version == FOUNDATION_REPAIR_VERSION ? foundation_repair_targets : NULL;
}

// A function that jumps to the address in the table, looked up first where it is missing.
#if defined(__x86_64__)
#define JUMP(name, index)                                  \
    __asm__(".text\n"                                      \
            ".globl \"" name "\"\n"                        \
            ".type \"" name "\", @function\n"              \
            ".p2align 4\n"                                 \
            "\"" name "\":\n"                              \
            "movq foundation_repair_targets+8*" #index "(%rip), %r11\n" \
            "testq %r11, %r11\n"                           \
            "je 1f\n"                                      \
            "jmpq *%r11\n"                                 \
            "1: movl $" #index ", %r11d\n"                 \
            "jmp foundation_repair_missing\n"              \
            ".size \"" name "\", . - \"" name "\"\n")

// Keeps all registers that may hold arguments.
__asm__(".text\n"
        ".type foundation_repair_missing, @function\n"
        "foundation_repair_missing:\n"
        "pushq %rbp\n"
        "movq %rsp, %rbp\n"
        "subq $192, %rsp\n"
        "movq %rax, -8(%rbp)\n"
        "movq %rdi, -16(%rbp)\n"
        "movq %rsi, -24(%rbp)\n"
        "movq %rdx, -32(%rbp)\n"
        "movq %rcx, -40(%rbp)\n"
        "movq %r8, -48(%rbp)\n"
        "movq %r9, -56(%rbp)\n"
        "movups %xmm0, -80(%rbp)\n"
        "movups %xmm1, -96(%rbp)\n"
        "movups %xmm2, -112(%rbp)\n"
        "movups %xmm3, -128(%rbp)\n"
        "movups %xmm4, -144(%rbp)\n"
        "movups %xmm5, -160(%rbp)\n"
        "movups %xmm6, -176(%rbp)\n"
        "movups %xmm7, -192(%rbp)\n"
        "movl %r11d, %edi\n"
        "callq foundation_repair_find\n"
        "movq %rax, %r11\n"
        "movq -8(%rbp), %rax\n"
        "movq -16(%rbp), %rdi\n"
        "movq -24(%rbp), %rsi\n"
        "movq -32(%rbp), %rdx\n"
        "movq -40(%rbp), %rcx\n"
        "movq -48(%rbp), %r8\n"
        "movq -56(%rbp), %r9\n"
        "movups -80(%rbp), %xmm0\n"
        "movups -96(%rbp), %xmm1\n"
        "movups -112(%rbp), %xmm2\n"
        "movups -128(%rbp), %xmm3\n"
        "movups -144(%rbp), %xmm4\n"
        "movups -160(%rbp), %xmm5\n"
        "movups -176(%rbp), %xmm6\n"
        "movups -192(%rbp), %xmm7\n"
        "leave\n"
        "jmpq *%r11\n"
        ".size foundation_repair_missing, . - foundation_repair_missing\n");
#elif defined(__aarch64__)
#define JUMP(name, index)                                              \
    __asm__(".text\n"                                                  \
            ".globl \"" name "\"\n"                                    \
            ".type \"" name "\", %function\n"                          \
            ".p2align 2\n"                                             \
            "\"" name "\":\n"                                          \
            "adrp x16, foundation_repair_targets+8*" #index "\n"       \
            "ldr x16, [x16, :lo12:foundation_repair_targets+8*" #index "]\n" \
            "cbz x16, 1f\n"                                            \
            "br x16\n"                                                 \
            "1: mov w16, #" #index "\n"                                \
            "b foundation_repair_missing\n"                            \
            ".size \"" name "\", . - \"" name "\"\n")

// Keeps all registers that may hold arguments.
__asm__(".text\n"
        ".type foundation_repair_missing, %function\n"
        "foundation_repair_missing:\n"
        "stp x29, x30, [sp, #-224]!\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\n"
        "stp x2, x3, [sp, #32]\n"
        "stp x4, x5, [sp, #48]\n"
        "stp x6, x7, [sp, #64]\n"
        "str x8, [sp, #80]\n"
        "stp q0, q1, [sp, #96]\n"
        "stp q2, q3, [sp, #128]\n"
        "stp q4, q5, [sp, #160]\n"
        "stp q6, q7, [sp, #192]\n"
        "mov w0, w16\n"
        "bl foundation_repair_find\n"
        "mov x16, x0\n"
        "ldp x0, x1, [sp, #16]\n"
        "ldp x2, x3, [sp, #32]\n"
        "ldp x4, x5, [sp, #48]\n"
        "ldp x6, x7, [sp, #64]\n"
        "ldr x8, [sp, #80]\n"
        "ldp q0, q1, [sp, #96]\n"
        "ldp q2, q3, [sp, #128]\n"
        "ldp q4, q5, [sp, #160]\n"
        "ldp q6, q7, [sp, #192]\n"
        "ldp x29, x30, [sp], #224\n"
        "br x16\n"
        ".size foundation_repair_missing, . - foundation_repair_missing\n");
#else
#error "write the jump for this processor"
#endif

JUMP(REPLACE_ITEM_AT, 0);
JUMP(REPLACE_ITEM, 1);
JUMP(READ_DATA, 2);
JUMP("CFPreferencesCopyAppValue", 3);
JUMP("CFPreferencesSetAppValue", 4);
JUMP("CFPreferencesCopyMultiple", 5);
JUMP("CFPreferencesAppSynchronize", 6);
