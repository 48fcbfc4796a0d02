/* What the extension gives the C classes of streams and events, which live in a
 * module of their own (python/halstream/_core/_handles) that loads no runtime.
 * Python's lock is held around every use. Later versions add members at the end. */
#ifndef HALSTREAM_CALLS_H
#define HALSTREAM_CALLS_H

#include <stddef.h>
#include <stdint.h>

#include "../hal/status/status.h"

/* The place that the latest record of an event stands for; words is NULL where
 * only the core can tell whether it is done. */
typedef struct halstream_place {
    const halstream_status *words;
    uint64_t place;
} halstream_place;

/* A block of memory, as blockRecord in records.go. */
typedef struct halstream_block {
    uint64_t start, size;
    int64_t device;
} halstream_block;

/* A launch of a kernel. The size is eleven numbers: grid, block, bytes of shared memory, whether all blocks run at
 * once, and the blocks of a cluster. Of each of the arguments there are a letter and 16 bytes. */
typedef struct halstream_launch {
    const uint32_t *size;
    const char *modes;
    const void *cells;
    int64_t count;
} halstream_launch;

/* The functions are those of pybuild with the same names. After an error each
 * returns 0 with Python's exception set. */
typedef struct halstream_calls {
    size_t size; /* of this struct */
    /* Not 0 at the end of the pointer: every call is to enter the core. */
    uint32_t *const *slow;
    int64_t *plain; /* how many open events only the C classes know */
    int64_t *devices; /* how many devices there are */
    const halstream_place *recorded; /* by the latest call that recorded an event */
    const int32_t *running; /* how many threads run a function of a stream */
    int (*inside)(void);    /* 1 if the calling thread runs a function of a stream */
    int64_t (*stream_status)(int64_t id);
    int64_t (*stream_nop)(int64_t id);
    int64_t (*stream_record)(int64_t id, int64_t event);
    int64_t (*stream_record_new)(int64_t id, int64_t ordinal, int64_t flags);
    int64_t (*stream_wait_event)(int64_t id, int64_t event);
    int64_t (*stream_wait_stream)(int64_t id, int64_t other);
    int64_t (*stream_query)(int64_t id);
    int64_t (*stream_sync)(int64_t id, int64_t limit);
    int64_t (*event_query)(int64_t id);
    int64_t (*event_sync)(int64_t id, int64_t limit);
    int64_t (*event_recorded)(int64_t ordinal, int64_t flags);
    int64_t (*event_new)(int64_t ordinal, int64_t flags);
    int64_t (*reap_events)(int64_t address, int64_t count);
    int64_t (*stream_wait_place)(int64_t id, int64_t other, int64_t words, int64_t place);
    int64_t (*event_placed)(int64_t stream, int64_t words, int64_t place, int64_t flags);
    const halstream_block *block; /* that the latest call of mem_find found, or of block_new_async made */
    int64_t (*mem_find)(int64_t address);
    int64_t (*stream_copy)(int64_t id, int64_t dst, int64_t src, int64_t n);
    int64_t (*block_new_async)(int64_t id, int64_t size, int64_t release); /* sets `block` */
    int64_t (*block_free_async)(int64_t id, int64_t stream);
    int64_t (*reap)(int64_t id);
    int64_t (*stream_launch)(int64_t id, int64_t function, int64_t launch); /* the address of a halstream_launch */
    void (*collected)(int64_t id); /* of collected.h: for finalizers */
    int64_t (*executable_launch)(int64_t id, int64_t stream);
    int64_t (*stream_copy_async)(int64_t id, int64_t dst, int64_t src, int64_t n);
    int64_t (*stream_fill)(int64_t id, int64_t dst, int64_t value, int64_t size, int64_t count);
    void (*calls_released)(void); /* to be called after a reap that has returned 1 */
} halstream_calls;

#define HALSTREAM_CALLS "halstream._halstream.calls" /* name of the capsule */

extern uint32_t *halstream_slow;
extern int64_t halstream_plain, halstream_devices;
extern halstream_place halstream_recorded;
extern halstream_block halstream_found;
extern int32_t halstream_running;
int halstream_inside(void);

/* Frees what graphs have kept that were reaped, outside of Go: finalizers may call it. dispatch.c has it. */
void halstream_calls_released(void);

#endif /* HALSTREAM_CALLS_H */
