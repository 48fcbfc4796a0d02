/* What the C and the Go half of the functions of halstream.h share. */
#ifndef HALSTREAM_CAPI_H
#define HALSTREAM_CAPI_H

#include <stddef.h>
#include <stdint.h>

#include "../python/halstream/include/halstream.h"

/* Who makes a call, for Go: the slot of the thread above, and whether it holds Python's lock. */
enum { WHO_HOLDS = 1, WHO_SHIFT = 1 };

/* What a thread keeps. It is on the heap, since a library that starts late has little
 * room for variables of threads. */
enum { KEPT_TEXT = 1024 };
typedef struct halstream_kept {
    char error[KEPT_TEXT]; /* the text of the latest error */
    int32_t number;        /* of the vendor for that error, 0 for none */
    int lost;              /* it is that of a lost device, and nobody has asked for it */
} halstream_kept;

/* Returns what the calling thread keeps, NULL without memory. */
halstream_kept *halstream_keep_for_thread(void);
extern _Thread_local halstream_kept *halstream_mine;
static inline halstream_kept *halstream_kept_here(void)
{
    return halstream_mine ? halstream_mine : halstream_keep_for_thread();
}

/* Keeps the text of the calling thread's latest error. */
void halstream_set_error(const char *text, size_t size);
/* Says that it is the error of a lost device: asking for the text counts as telling the program. */
void halstream_set_lost(void);
void halstream_set_error_number(int32_t number);
/* Ids that releases of operations have closed, for the next call; returns how many were
 * stored. */
size_t halstream_take_late(int64_t *ids, size_t room);
extern size_t halstream_late;

/* The functions that an operation's struct becomes. */
int halstream_run_operation(void *operation, char *text, size_t room);
void halstream_release_operation(void *operation);

#endif /* HALSTREAM_CAPI_H */
