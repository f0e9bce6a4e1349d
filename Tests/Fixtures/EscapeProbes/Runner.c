// Runs one probe in this process, as $HOME/escape-request says, prints its verdict and ends.
//
// A request is lines of "key value": which probe, at which moment, and the scene. Moments: `inside`, in the developer's
// code; `before`, in a constructor, before the runtime's main; `again`, there too, after the program has executed itself.
// Without a request nothing happens. The probes `?` and `?table` stand for lists of them, which root may see too.
#define _GNU_SOURCE
#include "EscapeRunner.h"
#include "Families.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define AGAIN_VARIABLE "ESCAPE_AGAIN"

enum { libraries_max = 16, request_max = 16 << 10 };

static const struct escape_table *const families[] = {
    &escape_paths,     &escape_links,       &escape_attributes,   &escape_existence,  &escape_device,  &escape_processes,
    &escape_signals,   &escape_sockets,     &escape_kernel_calls, &escape_namespaces, &escape_execution, &escape_loader,
    &escape_memory,    &escape_storage,     &escape_descriptors,  &escape_priorities, &escape_bypasses,
};
enum { families_count = sizeof families / sizeof families[0] };

static const struct escape_table *libraries[libraries_max];
static int library_count;

static char request[request_max];
static struct escape_scene scene;
static const char *wanted = "", *moment = "";

// MARK: Output

static void print(const char *form, ...) {
    char line[2048];
    va_list arguments;
    va_start(arguments, form);
    vsnprintf(line, sizeof line, form, arguments);
    va_end(arguments);
    escape_print(line);
}

static _Noreturn void fail(const char *what) {
    print("escape-probe: unusable %s: %s\n", what, strerror(errno));
    _exit(3);
}

// MARK: The request

static const struct {
    const char *key;
    const char **text;
    long *number;
} fields[] = {
    {"probe", &wanted, NULL},
    {"moment", &moment, NULL},
    {"home", &scene.home, NULL},
    {"temporary", &scene.temporary, NULL},
    {"group", &scene.group, NULL},
    {"bundle", &scene.bundle, NULL},
    {"outside", &scene.outside, NULL},
    {"secret", &scene.secret, NULL},
    {"link", &scene.link, NULL},
    {"fifo", &scene.fifo, NULL},
    {"folder", &scene.folder, NULL},
    {"library", &scene.library, NULL},
    {"device", &scene.device, NULL},
    {"database", &scene.database, NULL},
    {"service-socket", &scene.service_socket, NULL},
    {"app", &scene.app, NULL},
    {"other-group", &scene.other_group, NULL},
    {"other-home", &scene.other_home, NULL},
    {"other-group-identifier", &scene.other_group_identifier, NULL},
    {"other-extension-identifier", &scene.other_extension_identifier, NULL},
    {"abstract-socket", &scene.abstract_socket, NULL},
    {"message-queue", &scene.message_queue, NULL},
    {"tcp-port", NULL, &scene.tcp_port},
    {"udp-port", NULL, &scene.udp_port},
    {"shared-memory", NULL, &scene.shared_memory},
    {"victim", NULL, &scene.victim},
    {"service", NULL, &scene.service},
};
enum { fields_count = sizeof fields / sizeof fields[0] };

static void set(const char *key, char *value) {
    for (int index = 0; index < fields_count; index++) {
        if (strcmp(fields[index].key, key)) continue;
        if (fields[index].text) *fields[index].text = value;
        if (fields[index].number) *fields[index].number = atol(value);
        return;
    }
    errno = EINVAL;
    fail(key);
}

// Whether there is a request.
static int read_request(void) {
    const char *home = getenv("HOME");
    if (!home) return 0;
    int file = open(escape_path(home, "escape-request"), O_RDONLY | O_CLOEXEC);
    if (file == -1) return 0;
    ssize_t count = read(file, request, sizeof request - 1);
    close(file);
    if (count <= 0) return 0;
    for (int index = 0; index < fields_count; index++)
        if (fields[index].text) *fields[index].text = "";
    char *rest = NULL;
    for (char *line = strtok_r(request, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *space = strchr(line, ' ');
        if (!space) continue;
        *space = 0;
        set(line, space + 1);
    }
    return *wanted != 0;
}

// MARK: Libraries of others

static void load_libraries(void) {
    char folder_path[PATH_MAX];
    snprintf(folder_path, sizeof folder_path, "%s", escape_own_executable());
    char *name = strrchr(folder_path, '/');
    if (!name) return;
    strcpy(name, "/Probes");
    DIR *folder = opendir(folder_path);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder)) && library_count < libraries_max;) {
        size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 3, ".so")) continue;
        errno = ENOEXEC;
        void *library = dlopen(escape_path(folder_path, entry->d_name), RTLD_NOW | RTLD_LOCAL);
        if (!library) fail(dlerror());
        const struct escape_table *(*entry_point)(void) = (const struct escape_table *(*)(void))dlsym(library, "escape_probes");
        if (!entry_point) fail(entry->d_name);
        const struct escape_table *table = entry_point();
        errno = EPROTO;
        if (!table || table->version != ESCAPE_VERSION) fail(entry->d_name);
        libraries[library_count++] = table;
    }
    closedir(folder);
}

static const struct escape_table *table(int index) {
    return index < families_count ? families[index] : index - families_count < library_count ? libraries[index - families_count] : NULL;
}

// MARK: Probes

static void list(void) {
    const struct escape_table *found;
    for (int index = 0; (found = table(index)); index++)
        for (int number = 0; number < found->count; number++) {
            const struct escape_probe *probe = &found->probes[number];
            const char *refusal = probe->refusal ? probe->refusal() : NULL;
            print("escape-probe: probe\t%s\t%u\t%u\t%u\t%d\t%u\t%s\t%s\t%s\n", probe->name, probe->layers,
                  probe->together, probe->varies, probe->landlock, probe->flags, probe->ordinary ? probe->ordinary : "-",
                  refusal ? refusal : "-", probe->says);
        }
}

// The same for people, without probes of others: part of docs/sandbox-probes.md.
static void list_as_table(void) {
    static const char *const layers[] = {"landlock", "seccomp", "namespaces", "stage 2", "limits", "environment", "kernel"};
    enum { layers_count = sizeof layers / sizeof layers[0] };
    print("| probe | what it tries |");
    for (int layer = 0; layer < layers_count; layer++) print(" %s |", layers[layer]);
    print("\n| --- | --- |");
    for (int layer = 0; layer < layers_count; layer++) print(" --- |");
    print("\n");
    for (int index = 0; index < families_count; index++)
        for (int number = 0; number < families[index]->count; number++) {
            const struct escape_probe *probe = &families[index]->probes[number];
            print("| %s | %s |", probe->name, probe->says);
            for (int layer = 0; layer < layers_count; layer++) {
                unsigned bit = 1U << layer;
                if (bit == ESCAPE_LANDLOCK && probe->layers & bit && probe->landlock) print(" %d |", probe->landlock);
                else print(probe->layers & bit ? " x |" : probe->together & bit ? " + |" : probe->varies & bit ? " ? |" : " |");
            }
            print("\n");
        }
}

static const struct escape_probe *find(void) {
    const struct escape_table *found;
    for (int index = 0; (found = table(index)); index++)
        for (int number = 0; number < found->count; number++)
            if (!strcmp(found->probes[number].name, wanted)) return &found->probes[number];
    errno = ENOENT;
    fail(wanted);
}

static _Noreturn void run(void) {
    const struct escape_probe *probe = find();
    // Whoever reads this and nothing else knows that the probe ended its process.
    print("escape-probe: begin %s\n", probe->name);
    errno = 0;
    struct escape_verdict verdict = probe->attempt(&scene);
    switch (verdict.outcome) {
    case ESCAPE_DENIED: print("escape-probe: denied %d %s\n", verdict.error, verdict.text); break;
    case ESCAPE_REACHED: print("escape-probe: reached %s\n", verdict.text); break;
    case ESCAPE_TRIED: print("escape-probe: tried %s\n", verdict.text); break;
    case ESCAPE_NOT_APPLICABLE: print("escape-probe: not-applicable %s\n", verdict.text); break;
    }
    _exit(0);
}

static void execute_again(void) {
    char home[PATH_MAX + 8];
    snprintf(home, sizeof home, "HOME=%s", getenv("HOME"));
    char *words[] = {(char *)escape_own_executable(), NULL}, *variables[] = {home, AGAIN_VARIABLE "=1", NULL};
    execve(words[0], words, variables);
    fail("executing itself again");
}

__attribute__((constructor)) static void before_main(void) {
    if (getenv(ESCAPE_EXECUTED_VARIABLE)) {
        escape_print(ESCAPE_EXECUTED_LINE);
        _exit(0);
    }
    if (!read_request()) return;
    load_libraries();
    if (!strcmp(wanted, "?")) list();
    if (!strcmp(wanted, "?table")) list_as_table();
    if (*wanted == '?') _exit(0);
    if (geteuid() == 0) {
        errno = EPERM;
        fail("as root, for whom nothing is denied");
    }
    int is_again = getenv(AGAIN_VARIABLE) != NULL;
    if (!strcmp(moment, "again") && !is_again) execute_again();
    if (!strcmp(moment, "before") || is_again) run();
}

void escape_run_inside(void) {
    if (!strcmp(moment, "inside")) run();
}
