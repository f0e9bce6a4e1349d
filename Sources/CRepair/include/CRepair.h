// The C side of the repairs: joins the repair library, where it was loaded, and handles property lists of CoreFoundation,
// whose header this Foundation does not publish.
#ifndef BACKGROUNDASSETS_CREPAIR_H
#define BACKGROUNDASSETS_CREPAIR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether Foundation's functions were found and ours stand in their place. They do before main() runs.
bool crepair_has_joined(void);

// Whether a path leads to a file of at least that size whose bytes cannot vanish under a mapping.
bool crepair_can_map(const char *_Nonnull path, int64_t size_min);

// An immutable property list whose root is a dictionary; NULL for bytes that are none. Release it.
const void *_Nullable crepair_list_read(const void *_Nonnull bytes, size_t count);
// A dictionary without values. Release it.
const void *_Nullable crepair_list_empty(void);
// The list with one value changed, or removed where `value` is NULL. Release it.
const void *_Nullable crepair_list_setting(
    const void *_Nonnull list, const void *_Nonnull key, const void *_Nullable value);
// A retained value, or NULL.
const void *_Nullable crepair_list_copy_value(const void *_Nonnull list, const void *_Nonnull key);
// The values of an array of keys; all for NULL. Release it.
const void *_Nullable crepair_list_copy_values(const void *_Nonnull list, const void *_Nullable keys);
// The list as the bytes of a binary property list, for free(); NULL where a value has no place in one.
void *_Nullable crepair_list_write(const void *_Nonnull list, size_t *_Nonnull count);

void crepair_retain(const void *_Nonnull object);
void crepair_release(const void *_Nonnull object);
#endif
