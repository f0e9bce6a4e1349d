// Names and inodes carried over the border, in both directions.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <stdio.h>

static const char *own_file(const struct escape_scene *scene) {
    const char *path = escape_path(scene->home, "own");
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file != -1) close(file);
    return path;
}

static struct escape_verdict link_in(const struct escape_scene *scene) {
    return escape_result(link(scene->secret, escape_path(scene->home, "hard")), "link", "has a name of its own for it");
}

static struct escape_verdict link_in_by_descriptor(const struct escape_scene *scene) {
    int file = open(scene->secret, O_PATH | O_CLOEXEC);
    if (file == -1) return escape_denied("open O_PATH");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return escape_result(
        linkat(AT_FDCWD, path, AT_FDCWD, escape_path(scene->home, "hard"), AT_SYMLINK_FOLLOW), "linkat",
        "has a name of its own for it");
}

static struct escape_verdict link_in_by_empty_path(const struct escape_scene *scene) {
    int file = open(scene->secret, O_PATH | O_CLOEXEC);
    if (file == -1) return escape_denied("open O_PATH");
    return escape_result(
        linkat(file, "", AT_FDCWD, escape_path(scene->home, "hard"), AT_EMPTY_PATH), "linkat AT_EMPTY_PATH",
        "has a name of its own for it");
}

static struct escape_verdict link_out(const struct escape_scene *scene) {
    return escape_result(link(own_file(scene), escape_path(scene->outside, "hard")), "link", "named its file outside");
}

static struct escape_verdict rename_in(const struct escape_scene *scene) {
    return escape_result(rename(scene->secret, escape_path(scene->home, "taken")), "rename", "took it home");
}

static struct escape_verdict rename_out(const struct escape_scene *scene) {
    return escape_result(rename(own_file(scene), escape_path(scene->outside, "given")), "rename", "put its file outside");
}

static struct escape_verdict rename_over(const struct escape_scene *scene) {
    return escape_result(rename(own_file(scene), scene->secret), "rename", "replaced it");
}

static struct escape_verdict exchange(const struct escape_scene *scene) {
    return escape_result(
        renameat2(AT_FDCWD, own_file(scene), AT_FDCWD, scene->secret, RENAME_EXCHANGE), "renameat2", "exchanged it with its own");
}

static struct escape_verdict link_bundle(const struct escape_scene *scene) {
    // A name for its own code in a place where it may write would make the code its to write.
    return escape_result(
        link(escape_own_executable(), escape_path(scene->home, "code")), "link", "has a name for its code at home");
}

static const struct escape_probe probes[] = {
    {"links.in", link_in, LANDLOCK | NAMESPACES, "links a file outside into its home"},
    {"links.in-descriptor", link_in_by_descriptor, LANDLOCK | NAMESPACES, "the same by /proc/self/fd"},
    {"links.in-empty-path", link_in_by_empty_path, LANDLOCK | NAMESPACES, "the same by AT_EMPTY_PATH"},
    {"links.out", link_out, LANDLOCK | NAMESPACES, "links its own file to a name outside"},
    {"links.rename-in", rename_in, LANDLOCK | NAMESPACES, "renames a file outside into its home"},
    {"links.rename-out", rename_out, LANDLOCK | NAMESPACES, "renames its own file to a name outside"},
    {"links.rename-over", rename_over, LANDLOCK | NAMESPACES, "renames its own file over one outside"},
    {"links.exchange", exchange, LANDLOCK | NAMESPACES, "exchanges its own file with one outside"},
    {"links.bundle", link_bundle, LANDLOCK | NAMESPACES, "links its own code into its home"},
};
const struct escape_table escape_links = ESCAPE_TABLE(probes);
