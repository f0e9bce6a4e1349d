// Code that is not its own in its own process, and what the loader and the program are told from outside.
#define _GNU_SOURCE
#include "Families.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

extern char **environ;

#if defined(__x86_64__)
static const unsigned char returns_7[] = {0xb8, 7, 0, 0, 0, 0xc3};
#elif defined(__aarch64__)
static const unsigned char returns_7[] = {0xe0, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static struct escape_verdict call(void *code) {
    __builtin___clear_cache(code, (char *)code + sizeof returns_7);
    return ((int (*)(void))code)() == 7 ? escape_reached("ran its own machine code") : escape_held("it did not run");
}

static struct escape_verdict made_executable(const struct escape_scene *scene) {
    (void)scene;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return escape_denied("mmap");
    memcpy(page, returns_7, sizeof returns_7);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC) == -1) return escape_denied("mprotect PROT_EXEC");
    return call(page);
}
static struct escape_verdict born_executable(const struct escape_scene *scene) {
    (void)scene;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return escape_denied("mmap PROT_EXEC");
    memcpy(page, returns_7, sizeof returns_7);
    return call(page);
}
static struct escape_verdict executable_by_key(const struct escape_scene *scene) {
    (void)scene;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return escape_denied("mmap");
    memcpy(page, returns_7, sizeof returns_7);
    if (syscall(SYS_pkey_mprotect, page, 4096L, PROT_READ | PROT_EXEC, -1) == -1) return escape_denied("pkey_mprotect");
    return call(page);
}
static struct escape_verdict readable_is_executable(const struct escape_scene *scene) {
    (void)scene;
    // With this personality every readable mapping can be executed.
    if (syscall(SYS_personality, 0x0400000L) == -1) return escape_denied("personality");
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return escape_denied("mmap");
    memcpy(page, returns_7, sizeof returns_7);
    return call(page);
}
static struct escape_verdict mapped_written(const struct escape_scene *scene) {
    int file = open(escape_path(scene->home, "code"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    if (write(file, returns_7, sizeof returns_7) == -1) return escape_denied("write");
    void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED) return escape_denied("mmap PROT_EXEC");
    return call(page);
}
static struct escape_verdict own_memory_file(const struct escape_scene *scene) {
    (void)scene;
    // Writes to pages that are closed to writing, code among them.
    int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    return escape_result(file, "open", "may write to its own code");
}

static int find_small_library(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    struct stat status;
    if (!strstr(object->dlpi_name, ".so") || stat(object->dlpi_name, &status) == -1 || status.st_size > 1 << 20) return 0;
    *(const char **)found = object->dlpi_name;
    return 1;
}
static struct escape_verdict loaded_written(const struct escape_scene *scene) {
    const char *library = NULL;
    dl_iterate_phdr(find_small_library, &library);
    if (!library) return escape_not_applicable("there is no small library to be copied");
    const char *copy = escape_path(scene->home, "library.so");
    int from = open(library, O_RDONLY | O_CLOEXEC), to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (from == -1 || to == -1) return escape_denied("open");
    char bytes[1 << 14];
    for (ssize_t count; (count = read(from, bytes, sizeof bytes)) > 0;)
        if (write(to, bytes, (size_t)count) != count) return escape_denied("write");
    close(to);
    errno = EACCES;
    return dlopen(copy, RTLD_NOW | RTLD_LOCAL) ? escape_reached("loaded what it wrote") : escape_denied("dlopen");
}
static struct escape_verdict loaded_outside(const struct escape_scene *scene) {
    errno = EACCES;
    void *library = dlopen(scene->library, RTLD_NOW | RTLD_LOCAL);
    if (!library) return escape_denied("dlopen");
    return dlsym(library, "escape_outside") ? escape_reached("loaded a library outside") : escape_held("it is not that library");
}

static struct escape_verdict loader_variables(const struct escape_scene *scene) {
    (void)scene;
    static const char repair[] = "/libFoundationRepair.so";
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, "LD_", 3) && strncmp(*variable, "GLIBC_TUNABLES=", 15)) continue;
        size_t length = strlen(*variable);
        // What the launcher puts in front of Foundation is meant to be there.
        if (!strncmp(*variable, "LD_PRELOAD=", 11) && length > sizeof repair && !strchr(*variable, ':')
            && !strcmp(*variable + length - sizeof repair + 1, repair))
            continue;
        return escape_reached("the loader was told by somebody else");
    }
    return escape_held("no variable tells the loader anything");
}
static struct escape_verdict foreign_variables(const struct escape_scene *scene) {
    (void)scene;
    for (char **variable = environ; *variable; variable++)
        if (!strncmp(*variable, "ESCAPE_LEFT_BEHIND=", 19)) return escape_reached("has a variable of the service");
    return escape_held("has no variable of the service");
}
static struct escape_verdict foreign_library(const struct escape_scene *scene) {
    (void)scene;
    // The test preloads it into the service.
    return dlsym(RTLD_DEFAULT, "escape_outside") ? escape_reached("a library from outside is loaded")
                                                 : escape_held("no library from outside is loaded");
}

static const struct escape_probe probes[] = {
    {"loader.mprotect", made_executable, SECCOMP, "makes written memory executable"},
    {"loader.mmap", born_executable, SECCOMP, "has memory that can be written and executed"},
    {"loader.pkey-mprotect", executable_by_key, SECCOMP, "makes written memory executable by pkey_mprotect"},
    {"loader.personality", readable_is_executable, SECCOMP, "makes everything readable executable"},
    {"loader.mapped", mapped_written, NAMESPACES, "maps a file that it wrote as code"},
    {"loader.own-memory", own_memory_file, LANDLOCK, "writes to its code by /proc/self/mem"},
    {"loader.written", loaded_written, NAMESPACES, "loads a library that it wrote"},
    {"loader.outside", loaded_outside, LANDLOCK | NAMESPACES, "loads a library outside"},
    {"loader.variables", loader_variables, ENVIRONMENT, "is told by variables what to load"},
    {"loader.foreign-variables", foreign_variables, ENVIRONMENT, "has variables of the service"},
    {"loader.foreign-library", foreign_library, LANDLOCK | NAMESPACES | ENVIRONMENT, "has a library that a variable of the service names"},
};
const struct escape_table escape_loader = ESCAPE_TABLE(probes);
