// A library of probes as others would write it; docs/sandbox-probes.md tells how. It is also the library that lies outside
// in each scene.
#include "EscapeProbe.h"

#include <fcntl.h>

static struct escape_verdict groups(const struct escape_scene *scene) {
    (void)scene;
    return escape_reading(open("/etc/group", O_RDONLY | O_CLOEXEC), "open");
}

static const struct escape_probe probes[] = {
    {"sample.groups", groups, ESCAPE_LANDLOCK | ESCAPE_NAMESPACES, "reads /etc/group"},
};

const struct escape_table *escape_probes(void) {
    static const struct escape_table table = ESCAPE_TABLE(probes);
    return &table;
}

// Found by who managed to load this library from where it should not.
int escape_outside(void) { return 1; }
