// Disk without end in its own folders.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void lift(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == -1) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static struct escape_verdict large(const struct escape_scene *scene) {
    lift();
    int file = open(escape_path(scene->home, "large"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    return escape_result(fallocate(file, 0, 0, 8LL << 30), "fallocate", "has 8 GiB of the disk");
}
static struct escape_verdict kept(const struct escape_scene *scene) {
    lift();
    // Blocks behind the end, which the size of the file does not tell.
    int file = open(escape_path(scene->group, "kept"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    return escape_result(
        fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 8LL << 30), "fallocate FALLOC_FL_KEEP_SIZE", "has 8 GiB of the disk");
}
static struct escape_verdict sparse(const struct escape_scene *scene) {
    lift();
    int file = open(escape_path(scene->temporary, "sparse"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    return escape_result(ftruncate(file, 1LL << 40), "ftruncate", "has a file of 1 TiB");
}

static const struct escape_probe probes[] = {
    {"storage.large", large, LIMITS, "takes 8 GiB of the disk", ESCAPE_MAY_DIE},
    {"storage.kept", kept, SECCOMP, "takes 8 GiB behind the end of a file", ESCAPE_MAY_DIE},
    {"storage.sparse", sparse, LIMITS, "makes a file of 1 TiB", ESCAPE_MAY_DIE},
};
const struct escape_table escape_storage = ESCAPE_TABLE(probes);
