// Other programs in its place: the system's, its own again, what it wrote, what is in memory only, the loader run by hand.
#define _GNU_SOURCE
#include "Families.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

// With this variable our own program says at its start that it runs.
static char *const executed[] = {ESCAPE_EXECUTED_VARIABLE "=1", NULL};

// Every call that comes back was denied.
static struct escape_verdict run(const char *path) {
    char *words[] = {(char *)path, NULL};
    execve(path, words, executed);
    return escape_denied("execve");
}

static struct escape_verdict tool(const struct escape_scene *scene) {
    (void)scene;
    char *words[] = {"echo", "escape-probe: reached executed a program", NULL};
    execve("/bin/echo", words, executed);
    return escape_denied("execve");
}
static struct escape_verdict shell(const struct escape_scene *scene) {
    (void)scene;
    char *words[] = {"sh", "-c", "echo escape-probe: reached executed a program", NULL};
    execve("/bin/sh", words, executed);
    return escape_denied("execve");
}
static struct escape_verdict privileged(const struct escape_scene *scene) {
    (void)scene;
    // A program of root's that takes on its rights: without them it says so, and says that it ran.
    char *words[] = {"su", "--version", NULL};
    execve("/bin/su", words, executed);
    return escape_denied("execve");
}
static struct escape_verdict itself(const struct escape_scene *scene) {
    (void)scene;
    return run(escape_own_executable());
}
static struct escape_verdict itself_by_proc(const struct escape_scene *scene) {
    (void)scene;
    return run("/proc/self/exe");
}
static struct escape_verdict itself_by_descriptor(const struct escape_scene *scene) {
    (void)scene;
    int file = open(escape_own_executable(), O_RDONLY | O_CLOEXEC);
    if (file == -1) return escape_denied("open");
    char *words[] = {"itself", NULL};
    syscall(SYS_execveat, file, "", words, executed, AT_EMPTY_PATH);
    return escape_denied("execveat");
}
static struct escape_verdict written(const struct escape_scene *scene) {
    const char *copy = escape_copy_of_itself(scene);
    return copy ? run(copy) : escape_denied("copying its executable");
}
static struct escape_verdict written_to_group(const struct escape_scene *scene) {
    struct escape_scene other = *scene;
    other.home = scene->group;
    const char *copy = escape_copy_of_itself(&other);
    return copy ? run(copy) : escape_denied("copying its executable");
}
static struct escape_verdict script(const struct escape_scene *scene) {
    const char *path = escape_path(scene->home, "script");
    char text[PATH_MAX + 64];
    int length = snprintf(text, sizeof text, "#!%s\n", escape_own_executable());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (file == -1) return escape_denied("open");
    if (write(file, text, (size_t)length) != length) return escape_denied("write");
    close(file);
    return run(path);
}
static struct escape_verdict in_memory(const struct escape_scene *scene) {
    (void)scene;
    int code = open(escape_own_executable(), O_RDONLY | O_CLOEXEC);
    if (code == -1) return escape_denied("open");
    struct stat status;
    fstat(code, &status);
    int file = (int)syscall(SYS_memfd_create, "escape", MFD_CLOEXEC);
    if (file == -1) return escape_denied("memfd_create");
    char bytes[1 << 16];
    for (ssize_t count; (count = read(code, bytes, sizeof bytes)) > 0;)
        if (write(file, bytes, (size_t)count) != count) return escape_denied("write");
    char *words[] = {"memory", NULL};
    syscall(SYS_execveat, file, "", words, executed, AT_EMPTY_PATH);
    return escape_denied("execveat");
}
static const char *loader(void) {
    Dl_info found;
    return dladdr((void *)getauxval(AT_BASE), &found) ? found.dli_fname : NULL;
}
static struct escape_verdict load(const char *program) {
    if (!program) return escape_denied("copying its executable");
    if (!loader()) return escape_not_applicable("it was linked without a loader");
    char *words[] = {(char *)loader(), (char *)program, NULL};
    execve(words[0], words, executed);
    return escape_denied("execve");
}
static struct escape_verdict loader_itself(const struct escape_scene *scene) {
    (void)scene;
    return load(escape_own_executable());
}
static struct escape_verdict loader_written(const struct escape_scene *scene) { return load(escape_copy_of_itself(scene)); }
static struct escape_verdict library_as_program(const struct escape_scene *scene) {
    (void)scene;
    // The C library is a program too: it prints its version.
    Dl_info found;
    if (!dladdr((void *)printf, &found)) return escape_not_applicable("it was linked without the C library");
    return run(found.dli_fname);
}

static const struct escape_probe probes[] = {
    {"execution.tool", tool, LANDLOCK | NAMESPACES | STAGE_2, "executes /bin/echo"},
    {"execution.shell", shell, LANDLOCK | NAMESPACES | STAGE_2, "executes /bin/sh"},
    {"execution.privileged", privileged, LANDLOCK | NAMESPACES | STAGE_2, "executes /bin/su, which takes root's rights"},
    {"execution.itself", itself, STAGE_2, "executes itself again"},
    {"execution.proc", itself_by_proc, STAGE_2, "executes itself by /proc/self/exe"},
    {"execution.descriptor", itself_by_descriptor, SECCOMP | STAGE_2, "executes itself by execveat"},
    {"execution.written", written, LANDLOCK | NAMESPACES | STAGE_2, "executes what it wrote to its home"},
    {"execution.written-group", written_to_group, LANDLOCK | NAMESPACES | STAGE_2, "executes what it wrote to its group container"},
    {"execution.script", script, LANDLOCK | NAMESPACES | STAGE_2, "executes a script that it wrote"},
    {"execution.memory", in_memory, SECCOMP | STAGE_2, "executes what is in memory only"},
    {"execution.loader", loader_itself, STAGE_2, "has the loader run it"},
    {"execution.loader-written", loader_written, NAMESPACES | STAGE_2, "has the loader run what it wrote"},
    {"execution.c-library", library_as_program, LANDLOCK | STAGE_2, "executes the C library"},
};
const struct escape_table escape_execution = ESCAPE_TABLE(probes);
