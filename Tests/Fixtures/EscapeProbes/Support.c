// What several families of probes need.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/wait.h>

static char *buffer(void) {
    static char buffers[8][PATH_MAX];
    static int next;
    return buffers[next++ % 8];
}

const char *escape_path(const char *folder, const char *name) {
    char *path = buffer();
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

const char *escape_upward(const char *prefix, const char *path) {
    // More steps than any folder is deep; those above the root lead nowhere.
    char steps[3 * 32 + 1] = "";
    for (int step = 0; step < 32; step++) strcat(steps, "../");
    char *result = buffer();
    snprintf(result, PATH_MAX, "%s/%s%s", prefix, steps, path + 1);
    return result;
}

const char *escape_refusal(const char *setting, long greatest) {
    FILE *file = fopen(escape_path("/proc/sys", setting), "re");
    long value = 0;
    if (!file) return NULL;
    int count = fscanf(file, "%ld", &value);
    fclose(file);
    if (count != 1 || value <= greatest) return NULL;
    char *text = buffer();
    snprintf(text, PATH_MAX, "%s is %ld", setting, value);
    return text;
}

const char *escape_no_user_namespaces(void) {
    pid_t child = fork();
    // Some systems give the namespace and keep its powers.
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1);
    int status = 0;
    if (child == -1 || waitpid(child, &status, 0) == -1) return NULL;
    return status == 0 ? NULL : "ordinary users have no user namespaces here";
}

const char *escape_own_executable(void) { return (const char *)getauxval(AT_EXECFN); }

const char *escape_copy_of_itself(const struct escape_scene *scene) {
    const char *copy = escape_path(scene->home, "program");
    int from = open(escape_own_executable(), O_RDONLY | O_CLOEXEC);
    int to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t count = -1;
    char bytes[1 << 16];
    if (from != -1 && to != -1)
        while ((count = read(from, bytes, sizeof bytes)) > 0)
            if (write(to, bytes, (size_t)count) != count) return NULL;
    if (from != -1) close(from);
    if (to != -1) close(to);
    return count == 0 ? copy : NULL;
}

void escape_print(const char *text) {
    for (size_t rest = strlen(text); rest;) {
        ssize_t count = write(1, text, rest);
        if (count == -1) return;
        text += count;
        rest -= (size_t)count;
    }
}
