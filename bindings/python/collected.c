#include "collected.h"
#include "../../hal/status/status.h"
#include "caller.h"

#include <stdlib.h>

static halstream_note *notes;
int32_t halstream_noted;

void halstream_collected(int64_t id)
{
    if ((__atomic_load_n(halstream_status, __ATOMIC_ACQUIRE) & HALSTREAM_CAPTURED) == 0) return;
    halstream_note *n = malloc(sizeof *n);
    if (n == NULL) return; /* the capture ends when the stream is closed */
    n->id = id;
    n->next = __atomic_load_n(&notes, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&notes, &n->next, n, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    __atomic_store_n(&halstream_noted, 1, __ATOMIC_RELEASE);
}

halstream_note *halstream_take_notes(void)
{
    __atomic_store_n(&halstream_noted, 0, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&notes, NULL, __ATOMIC_ACQ_REL);
}
