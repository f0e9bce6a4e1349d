// Puts our functions in the place of Foundation's, through the table of the repair library.
#define _GNU_SOURCE
#include "CRepair.h"

#include "../FoundationRepair/include/FoundationRepair.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

// MARK: CoreFoundation, as far as it is used here.

typedef const void *object;
typedef long cf_index;

extern const object kCFPreferencesCurrentApplication;
extern const object kCFAllocatorNull;
extern const char kCFTypeDictionaryKeyCallBacks;
extern const char kCFTypeDictionaryValueCallBacks;

extern object CFRetain(object value);
extern void CFRelease(object value);
extern unsigned long CFGetTypeID(object value);
extern unsigned long CFDictionaryGetTypeID(void);
extern object CFDictionaryCreateMutable(object allocator, cf_index capacity, const void *keys, const void *values);
extern object CFDictionaryCreateMutableCopy(object allocator, cf_index capacity, object dictionary);
extern object CFDictionaryGetValue(object dictionary, object key);
extern void CFDictionarySetValue(object dictionary, object key, object value);
extern void CFDictionaryRemoveValue(object dictionary, object key);
extern cf_index CFArrayGetCount(object array);
extern object CFArrayGetValueAtIndex(object array, cf_index place);
extern object CFDataCreate(object allocator, const uint8_t *bytes, cf_index count);
extern const uint8_t *CFDataGetBytePtr(object data);
extern cf_index CFDataGetLength(object data);
extern object CFPropertyListCreateWithData(
    object allocator, object data, unsigned long options, cf_index *format, object *error);
extern object CFPropertyListCreateData(
    object allocator, object list, cf_index format, unsigned long options, object *error);

static const cf_index binary_format = 200;

// MARK: Ours, in Swift. Each says whether the application is an app group of this process.

extern bool backgroundassets_defaults_copy(object application, object key, object *value);
extern bool backgroundassets_defaults_set(object application, object key, object value);
extern bool backgroundassets_defaults_copy_multiple(object application, object keys, object *list);
extern bool backgroundassets_defaults_synchronize(object application, bool *is_done);
// Called in Swift's own way, so only their addresses mean something here.
extern char backgroundassets_replace_item_at[];
extern char backgroundassets_replace_item[];
extern char backgroundassets_read_data[];

__attribute__((visibility("hidden"))) void *crepair_originals[foundation_repair_count];
static bool has_joined;

// What the app itself prefers is none of our business, and the most frequent question.
static bool is_own(object application) { return !application || application == kCFPreferencesCurrentApplication; }

static object copy_value(object key, object application) {
    object value = NULL;
    if (!is_own(application) && backgroundassets_defaults_copy(application, key, &value)) return value;
    return ((object(*)(object, object))crepair_originals[foundation_repair_copy_value])(key, application);
}

static void set_value(object key, object value, object application) {
    if (!is_own(application) && backgroundassets_defaults_set(application, key, value)) return;
    ((void (*)(object, object, object))crepair_originals[foundation_repair_set_value])(key, value, application);
}

static object copy_multiple(object keys, object application, object user, object host) {
    object list = NULL;
    if (!is_own(application) && backgroundassets_defaults_copy_multiple(application, keys, &list)) return list;
    return ((object(*)(object, object, object, object))crepair_originals[foundation_repair_copy_multiple])(
        keys, application, user, host);
}

static unsigned char synchronize(object application) {
    bool is_done = false;
    if (!is_own(application) && backgroundassets_defaults_synchronize(application, &is_done)) return is_done;
    return ((unsigned char (*)(object))crepair_originals[foundation_repair_synchronize])(application);
}

__attribute__((constructor)) static void join(void) {
    void **(*table)(unsigned) = (void **(*)(unsigned))dlsym(RTLD_DEFAULT, "foundation_repair_table");
    void **targets = table ? table(FOUNDATION_REPAIR_VERSION) : NULL;
    if (!targets) return;
    void *const ours[foundation_repair_count] = {
        [foundation_repair_replace_item_at] = backgroundassets_replace_item_at,
        [foundation_repair_replace_item] = backgroundassets_replace_item,
        [foundation_repair_read_data] = backgroundassets_read_data,
        [foundation_repair_copy_value] = (void *)copy_value,
        [foundation_repair_set_value] = (void *)set_value,
        [foundation_repair_copy_multiple] = (void *)copy_multiple,
        [foundation_repair_synchronize] = (void *)synchronize,
    };
    // All or none: half a repair is a riddle.
    for (unsigned place = 0; place < foundation_repair_count; place++)
        if (!targets[place]) return;
    memcpy(crepair_originals, targets, sizeof crepair_originals);
    memcpy(targets, ours, sizeof ours);
    has_joined = true;
}

bool crepair_has_joined(void) { return has_joined; }

// Foundation's own Data.init(contentsOf:options:), for ours.
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl backgroundassets_original_read_data\n"
        ".hidden backgroundassets_original_read_data\n"
        ".type backgroundassets_original_read_data, @function\n"
        "backgroundassets_original_read_data:\n"
        "jmpq *crepair_originals+8*2(%rip)\n"
        ".size backgroundassets_original_read_data, . - backgroundassets_original_read_data\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl backgroundassets_original_read_data\n"
        ".hidden backgroundassets_original_read_data\n"
        ".type backgroundassets_original_read_data, %function\n"
        "backgroundassets_original_read_data:\n"
        "adrp x16, crepair_originals+8*2\n"
        "ldr x16, [x16, :lo12:crepair_originals+8*2]\n"
        "br x16\n"
        ".size backgroundassets_original_read_data, . - backgroundassets_original_read_data\n");
#else
#error "write the jump for this processor"
#endif
_Static_assert(foundation_repair_read_data == 2, "the jump names its place in the table");

// MARK: Files

bool crepair_can_map(const char *path, int64_t size_min) {
    // Behind these a server or a program may take the file away, and the process would be killed when it touches it:
    // NFS, SMB (three kinds), 9P, FUSE, Ceph, AFS.
    static const uint32_t remote[] = {0x6969, 0x517B, 0xFE534D42, 0xFF534D42, 0x01021997, 0x65735546, 0x00C36400, 0x5346414F};
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < size_min) return false;
    struct statfs system;
    if (statfs(path, &system) != 0) return false;
    for (size_t place = 0; place < sizeof remote / sizeof *remote; place++)
        if ((uint32_t)system.f_type == remote[place]) return false;
    return true;
}

// MARK: Property lists

const void *crepair_list_read(const void *bytes, size_t count) {
    object data = CFDataCreate(NULL, bytes, (cf_index)count);
    if (!data) return NULL;
    object list = CFPropertyListCreateWithData(NULL, data, 0, NULL, NULL);
    CFRelease(data);
    if (!list || CFGetTypeID(list) == CFDictionaryGetTypeID()) return list;
    CFRelease(list);
    return NULL;
}

const void *crepair_list_empty(void) {
    return CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

const void *crepair_list_setting(const void *list, const void *key, const void *value) {
    object result = CFDictionaryCreateMutableCopy(NULL, 0, list);
    if (!result) return NULL;
    if (value)
        CFDictionarySetValue(result, key, value);
    else
        CFDictionaryRemoveValue(result, key);
    return result;
}

const void *crepair_list_copy_value(const void *list, const void *key) {
    object value = CFDictionaryGetValue(list, key);
    return value ? CFRetain(value) : NULL;
}

const void *crepair_list_copy_values(const void *list, const void *keys) {
    if (!keys) return CFDictionaryCreateMutableCopy(NULL, 0, list);
    object result = crepair_list_empty();
    for (cf_index place = 0; result && place < CFArrayGetCount(keys); place++) {
        object key = CFArrayGetValueAtIndex(keys, place);
        object value = CFDictionaryGetValue(list, key);
        if (value) CFDictionarySetValue(result, key, value);
    }
    return result;
}

void *crepair_list_write(const void *list, size_t *count) {
    object data = CFPropertyListCreateData(NULL, list, binary_format, 0, NULL);
    if (!data) return NULL;
    *count = (size_t)CFDataGetLength(data);
    void *bytes = malloc(*count ? *count : 1);
    if (bytes) memcpy(bytes, CFDataGetBytePtr(data), *count);
    CFRelease(data);
    return bytes;
}

void crepair_retain(const void *value) { CFRetain(value); }
void crepair_release(const void *value) { CFRelease(value); }
