// A lock of four bytes that waits in the kernel.
#ifndef BACKGROUNDASSETS_OS_LOCK_H
#define BACKGROUNDASSETS_OS_LOCK_H
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// 0 is free, 1 held, 2 held and somebody may be waiting.
typedef struct os_unfair_lock_s {
    uint32_t _os_unfair_lock_opaque;
} os_unfair_lock, *os_unfair_lock_t;

#define OS_UNFAIR_LOCK_INIT ((os_unfair_lock){0})

static inline bool os_unfair_lock_trylock(os_unfair_lock_t _Nonnull lock) {
    uint32_t none = 0;
    return __atomic_compare_exchange_n(
        &lock->_os_unfair_lock_opaque, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void os_unfair_lock_lock(os_unfair_lock_t _Nonnull lock) {
    if (os_unfair_lock_trylock(lock)) return;
    int number = errno;
    while (__atomic_exchange_n(&lock->_os_unfair_lock_opaque, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &lock->_os_unfair_lock_opaque, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = number;
}

static inline void os_unfair_lock_unlock(os_unfair_lock_t _Nonnull lock) {
    uint32_t state = __atomic_exchange_n(&lock->_os_unfair_lock_opaque, 0, __ATOMIC_RELEASE);
    if (state == 1) return;
    // Releasing what nobody holds is a mistake that must not go unseen, as on Apple's systems.
    if (state == 0) abort();
    int number = errno;
    syscall(SYS_futex, &lock->_os_unfair_lock_opaque, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = number;
}
#endif
