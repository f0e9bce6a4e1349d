// Memory without end, of every kind that can be had without a file of its own on the disk.
#define _GNU_SOURCE
#include "Families.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>

// Twice what an extension may have.
enum { bomb = 96 << 20, page = 4096 };

// A limit that the process may lift itself is none.
static void lift(int resource) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) == -1) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
}

static struct escape_verdict filled(void *memory, const char *call) {
    if (memory == MAP_FAILED || memory == NULL) return escape_denied(call);
    for (size_t offset = 0; offset < bomb; offset += page) ((volatile char *)memory)[offset] = 1;
    return escape_reached("has 96 MiB");
}
static void *mapped(int protection, int flags, int file) { return mmap(NULL, bomb, protection, flags, file, 0); }

static struct escape_verdict heap(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_DATA);
    return filled(malloc(bomb), "malloc");
}
static struct escape_verdict segment(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_DATA);
    void *start = sbrk(bomb);
    return filled(start == (void *)-1 ? NULL : start, "brk");
}
static struct escape_verdict anonymous(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_DATA);
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), "mmap");
}
static struct escape_verdict reserved(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_DATA);
    void *memory = mapped(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (memory == MAP_FAILED) return escape_denied("mmap");
    if (mprotect(memory, bomb, PROT_READ | PROT_WRITE) == -1) return escape_denied("mprotect");
    return filled(memory, "mprotect");
}
static struct escape_verdict grown(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_DATA);
    void *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return escape_denied("mmap");
    return filled(mremap(memory, page, bomb, MREMAP_MAYMOVE), "mremap");
}
static struct escape_verdict grows_down(const struct escape_scene *scene) {
    (void)scene;
    // Counts as a stack, so the limit of data does not hold it.
    lift(RLIMIT_STACK);
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1), "mmap MAP_GROWSDOWN");
}
static struct escape_verdict shared(const struct escape_scene *scene) {
    (void)scene;
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1), "mmap MAP_SHARED");
}
static struct escape_verdict in_memory_file(const struct escape_scene *scene) {
    (void)scene;
    int file = (int)syscall(SYS_memfd_create, "escape", MFD_CLOEXEC);
    if (file == -1) return escape_denied("memfd_create");
    if (ftruncate(file, bomb) == -1) return escape_denied("ftruncate");
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_SHARED, file), "mmap");
}
static struct escape_verdict named(const struct escape_scene *scene) {
    (void)scene;
    char name[64];
    snprintf(name, sizeof name, "/escape-%ld", (long)getpid());
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file == -1) return escape_denied("shm_open");
    shm_unlink(name);
    if (ftruncate(file, bomb) == -1) return escape_denied("ftruncate");
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_SHARED, file), "mmap");
}
static struct escape_verdict system_v(const struct escape_scene *scene) {
    (void)scene;
    int memory = shmget(IPC_PRIVATE, bomb, IPC_CREAT | 0600);
    if (memory == -1) return escape_denied("shmget");
    void *place = shmat(memory, NULL, 0);
    shmctl(memory, IPC_RMID, NULL);
    return filled(place == (void *)-1 ? NULL : place, "shmat");
}
static struct escape_verdict zero_device(const struct escape_scene *scene) {
    (void)scene;
    int file = open("/dev/zero", O_RDWR | O_CLOEXEC);
    if (file == -1) return escape_denied("open");
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_SHARED, file), "mmap");
}
static struct escape_verdict private_file(const struct escape_scene *scene) {
    lift(RLIMIT_DATA);
    int file = open(escape_path(scene->home, "sparse"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    if (ftruncate(file, bomb) == -1) return escape_denied("ftruncate");
    return filled(mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE, file), "mmap MAP_PRIVATE");
}
static struct escape_verdict in_root(const struct escape_scene *scene) {
    (void)scene;
    // The root of a namespace of its own lies in memory.
    int file = open("/escape", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    unlink("/escape");
    return escape_result(posix_fallocate(file, 0, bomb) == 0 ? 0 : -1, "fallocate", "has 96 MiB");
}

__attribute__((noinline)) static long deepen(long frames) {
    volatile char frame[64 << 10];
    frame[0] = (char)frames;
    return frames == 0 ? frame[0] : deepen(frames - 1) + frame[0];
}
static struct escape_verdict stack(const struct escape_scene *scene) {
    (void)scene;
    // 6 MiB: below what an ordinary program may have.
    lift(RLIMIT_STACK);
    return deepen(96) == LONG_MIN ? escape_held("") : escape_reached("has a stack of 6 MiB");
}

static void *fill_stack(void *unused) {
    (void)unused;
    return (void *)deepen(96);
}
static struct escape_verdict stacks(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_DATA);
    pthread_t threads[16];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    for (int index = 0; index < 16; index++) {
        int error = pthread_create(&threads[index], &attributes, fill_stack, NULL);
        if (error) {
            errno = error;
            return escape_denied("pthread_create");
        }
    }
    for (int index = 0; index < 16; index++) pthread_join(threads[index], NULL);
    return escape_reached("has 16 stacks of 8 MiB");
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static void *wait_at_gate(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return unused;
}
static struct escape_verdict threads(const struct escape_scene *scene) {
    (void)scene;
    enum { count = 4000 };
    static pthread_t all[count];
    lift(RLIMIT_NPROC);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16 << 10);
    pthread_attr_setguardsize(&attributes, 0);
    pthread_mutex_lock(&gate);
    int made = 0, error = 0;
    while (made < count && !(error = pthread_create(&all[made], &attributes, wait_at_gate, NULL))) made++;
    pthread_mutex_unlock(&gate);
    for (int index = 0; index < made; index++) pthread_join(all[index], NULL);
    errno = error;
    return made < count ? escape_denied("pthread_create") : escape_reached("has 4,000 threads");
}

static struct escape_verdict pipes(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_NOFILE);
    enum { wanted = 32 << 20 };
    static const char bytes[1 << 16];
    size_t held = 0;
    while (held < wanted) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) == -1) return escape_denied("pipe2");
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        size_t before = held;
        for (ssize_t count; (count = write(ends[1], bytes, sizeof bytes)) > 0;) held += (size_t)count;
        if (held == before) return escape_denied("write");
    }
    return escape_reached("has 32 MiB in pipes");
}
static struct escape_verdict locked(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_MEMLOCK);
    static char bytes[page];
    return escape_result(mlock(bytes, sizeof bytes), "mlock", "keeps memory from being swapped out");
}
static struct escape_verdict descriptors(const struct escape_scene *scene) {
    (void)scene;
    lift(RLIMIT_NOFILE);
    for (int count = 0; count < 8192; count++)
        if (fcntl(0, F_DUPFD_CLOEXEC, 0) == -1) return escape_denied("fcntl F_DUPFD");
    return escape_reached("has 8,192 descriptors");
}

static const struct escape_probe probes[] = {
    {"memory.heap", heap, LIMITS, "takes 96 MiB from the heap", ESCAPE_MAY_DIE},
    {"memory.segment", segment, LIMITS, "grows its data segment by 96 MiB", ESCAPE_MAY_DIE},
    {"memory.anonymous", anonymous, LIMITS, "maps 96 MiB", ESCAPE_MAY_DIE},
    {"memory.reserved", reserved, LIMITS, "maps 96 MiB closed and opens them", ESCAPE_MAY_DIE},
    {"memory.grown", grown, LIMITS, "grows a mapping to 96 MiB", ESCAPE_MAY_DIE},
    {"memory.grows-down", grows_down, SECCOMP, "maps 96 MiB as a stack", ESCAPE_MAY_DIE},
    {"memory.shared", shared, SECCOMP, "maps 96 MiB of shared memory", ESCAPE_MAY_DIE},
    {"memory.memfd", in_memory_file, SECCOMP, "makes a file of 96 MiB in memory", ESCAPE_MAY_DIE},
    {"memory.named", named, LANDLOCK | NAMESPACES, "makes shared memory with a name", ESCAPE_MAY_DIE},
    {"memory.system-v", system_v, SECCOMP, "makes shared memory of System V", ESCAPE_MAY_DIE},
    {"memory.zero-device", zero_device, LANDLOCK | NAMESPACES, "maps 96 MiB of /dev/zero", ESCAPE_MAY_DIE},
    {"memory.private-file", private_file, LIMITS, "writes to 96 MiB of a file that is mapped privately", ESCAPE_MAY_DIE},
    {"memory.root", in_root, NAMESPACES | KERNEL, "fills its root folder", ESCAPE_MAY_DIE,
     "the root folder is root's; one in memory, made for the extension, must not be the extension's"},
    {"memory.stack", stack, LIMITS, "needs 6 MiB of stack", ESCAPE_MAY_DIE},
    {"memory.stacks", stacks, LIMITS, "fills the stacks of 16 threads", ESCAPE_MAY_DIE},
    {"memory.threads", threads, LIMITS, "makes 4,000 threads", ESCAPE_MAY_DIE},
    // Few pipes are enough where they may be made large, and small ones where they may be many.
    {"memory.pipes", pipes, 0, "fills pipes with 32 MiB", 0, NULL, LIMITS | SECCOMP},
    {"memory.locked", locked, SECCOMP, "locks memory"},
    {"memory.descriptors", descriptors, LIMITS, "opens 8,192 descriptors"},
};
const struct escape_table escape_memory = ESCAPE_TABLE(probes);
