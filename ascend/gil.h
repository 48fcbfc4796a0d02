/* Python's lock around calls of the library. */
#ifndef HALSTREAM_NPU_GIL_H
#define HALSTREAM_NPU_GIL_H

#include <stddef.h>

/* Defined by the extension; absent in Go's own tests, where there is no such lock. A call of the library
 * may wait for room in a stream's queue, and a report thread of the program may need Python's lock. */
extern void *halstream_unlock(void) __attribute__((weak));
extern void halstream_relock(void *state) __attribute__((weak));

static inline void *na_unlock(void) { return halstream_unlock ? halstream_unlock() : NULL; }

static inline void na_relock(void *state)
{
    if (state != NULL) halstream_relock(state);
}

#endif
