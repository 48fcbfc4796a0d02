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

/* Takes the lock that hs_unlock has released, and runs the handlers of signals that came. Returns 0
 * with the lock released again; 1, with the lock held and Python's exception set, if one raised. */
extern int halstream_interrupted(void **state) __attribute__((weak));

static inline int hs_interrupted(void **state)
{
    return halstream_interrupted ? halstream_interrupted(state) : 0;
}

#endif /* HALSTREAM_CUDA_GIL_H */
