// What a probe is: one try of an extension to reach what is not its own. docs/sandbox-probes.md tells how to write one.
//
// A library of probes exports escape_probes(), which answers a table. The fixture extension loads it, calls one probe in
// a process of its own and prints the verdict; the test that started it compares that with the layers of the sandbox,
// and looks itself at what was to be reached.
#pragma once
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

// Grows with every change of the structures below. A library of another version is refused loudly.
enum { ESCAPE_VERSION = 3 };

// The layers of the sandbox, by what holds a probe.
enum {
    ESCAPE_LANDLOCK = 1 << 0,
    ESCAPE_SECCOMP = 1 << 1,
    ESCAPE_NAMESPACES = 1 << 2,
    // What the runtime gives up before the developer's code: no execution, no further filters.
    ESCAPE_STAGE_2 = 1 << 3,
    // Resource limits.
    ESCAPE_LIMITS = 1 << 4,
    // Clean variables, and no descriptor but the extension's own.
    ESCAPE_ENVIRONMENT = 1 << 5,
    // The kernel refuses every ordinary user; the probe says in `ordinary` why it is there all the same.
    ESCAPE_KERNEL = 1 << 6,
};

// Flags of a probe.
enum {
    // Its end by a signal is a denial: it asks for more than a limit, or for a call at which a filter kills.
    ESCAPE_MAY_DIE = 1 << 0,
    // It meets whatever runs meanwhile: no other probe does.
    ESCAPE_ALONE = 1 << 1,
    // Stage 2 holds it by its part of Landlock: where the kernel has none, it does not.
    ESCAPE_BY_LANDLOCK = 1 << 2,
};

enum escape_outcome {
    ESCAPE_DENIED,
    ESCAPE_REACHED,
    // It did all it could and cannot know what came of it: the test looks.
    ESCAPE_TRIED,
    // This kernel or processor has nothing of the kind.
    ESCAPE_NOT_APPLICABLE,
};

struct escape_verdict {
    enum escape_outcome outcome;
    // errno of the call that was denied.
    int error;
    // The call that was denied, or what was reached. Lives as long as the process.
    const char *text;
};

// What there is around the extension. Paths are absolute and exist; texts are never NULL.
struct escape_scene {
    // The extension's own: its home, folder for temporary files, group container, and the folder of its executable.
    const char *home, *temporary, *group, *bundle;
    // Outside of everything that is its own, of the same user: a folder, and in it a file with a few bytes, a symbolic
    // link to it, a FIFO, an empty folder, and a library with a function escape_outside().
    const char *outside, *secret, *link, *fifo, *folder, *library;
    // The device: its folder, database and socket, the app's own folder, and containers of another app with a file in each.
    const char *device, *database, *service_socket, *app, *other_group, *other_home;
    // Whose these containers are: anybody may know that, and not their paths.
    const char *other_group_identifier, *other_extension_identifier;
    // Where somebody listens: the name of an abstract socket without its leading NUL, a POSIX message queue.
    const char *abstract_socket, *message_queue;
    // Ports of 127.0.0.1, the key of a shared memory segment of System V.
    long tcp_port, udp_port, shared_memory;
    // A process of the same user that has nothing to do with the extension, and the one that started the extension.
    long victim, service;
};

struct escape_probe {
    // family.route, in lower case.
    const char *name;
    struct escape_verdict (*attempt)(const struct escape_scene *);
    // Each of these layers holds the probe also when it is the only one.
    unsigned layers;
    // What it tries, as a phrase.
    const char *says;
    unsigned flags;
    // NULL when an ordinary user without any sandbox reaches it; else why not, and why the probe is there.
    const char *ordinary;
    // These hold it only together; 0 for none.
    unsigned together;
    // These hold it with some kernels and not with others, and nothing relies on them.
    unsigned varies;
    // The version of Landlock from which on that holds it; 0 for every version.
    int landlock;
    // Asked outside of any sandbox: why this machine refuses it to every ordinary user; NULL where it does not.
    const char *(*refusal)(void);
};

struct escape_table {
    int version;
    int count;
    const struct escape_probe *probes;
};

// What a library of probes exports.
const struct escape_table *escape_probes(void);

#define ESCAPE_TABLE(list) \
    { ESCAPE_VERSION, sizeof(list) / sizeof((list)[0]), list }

static inline struct escape_verdict escape_denied(const char *call) {
    return (struct escape_verdict){ESCAPE_DENIED, errno, call};
}

// Denied by what was found, not by a call.
static inline struct escape_verdict escape_held(const char *found) {
    return (struct escape_verdict){ESCAPE_DENIED, 0, found};
}

static inline struct escape_verdict escape_reached(const char *what) {
    return (struct escape_verdict){ESCAPE_REACHED, 0, what};
}

static inline struct escape_verdict escape_tried(const char *what) {
    return (struct escape_verdict){ESCAPE_TRIED, 0, what};
}

static inline struct escape_verdict escape_not_applicable(const char *why) {
    return (struct escape_verdict){ESCAPE_NOT_APPLICABLE, 0, why};
}

// The verdict of a call that answers -1 when it is denied.
static inline struct escape_verdict escape_result(long result, const char *call, const char *what) {
    return result == -1 ? escape_denied(call) : escape_reached(what);
}

// The verdict of an opened file: reached is only what can be read.
static inline struct escape_verdict escape_reading(int descriptor, const char *call) {
    if (descriptor == -1) return escape_denied(call);
    char byte;
    ssize_t count = read(descriptor, &byte, 1);
    close(descriptor);
    if (count == -1) return escape_denied("read");
    return count == 1 ? escape_reached("read a byte") : escape_held("there was nothing to be read");
}
