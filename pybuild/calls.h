/* What C code of the extension shares with Go. Python's lock is held around every use. */
#ifndef HALSTREAM_CALLS_H
#define HALSTREAM_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* A block of memory, as blockRecord in records.go. */
typedef struct halstream_block {
    uint64_t start, size;
    int64_t device;
} halstream_block;

/* A launch of a kernel. The size is eleven numbers: grid, block, bytes of shared memory, whether all blocks run at
 * once, and the blocks of a cluster. Of each cell of the arguments there are a letter and 16 bytes. */
typedef struct halstream_launch {
    const uint32_t *size;
    const char *modes;
    const void *cells;
    int64_t count;
} halstream_launch;

extern halstream_block halstream_found; /* by the latest call of MemFind */

/* Frees what graphs have kept that were reaped, outside of Go: finalizers may call it. dispatch.c has it. */
void halstream_calls_released(void);

#endif /* HALSTREAM_CALLS_H */
