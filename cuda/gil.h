/* Python's lock around calls of the driver. */
#ifndef HALSTREAM_CUDA_GIL_H
#define HALSTREAM_CUDA_GIL_H

#include <stddef.h>

/* Defined by the extension; absent in Go's own tests, where there is no such lock. A
 * call of the driver may wait for room in the launch queue, or for a lock of the
 * driver's whose holder waits for Python's lock, so that one is released meanwhile. */
extern void *halstream_unlock(void) __attribute__((weak));
extern void halstream_relock(void *state) __attribute__((weak));

static inline void *hs_unlock(void) { return halstream_unlock ? halstream_unlock() : NULL; }

static inline void hs_relock(void *state)
{
    if (state != NULL) halstream_relock(state);
}

#endif /* HALSTREAM_CUDA_GIL_H */
