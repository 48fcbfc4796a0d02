/* Events. */
#ifndef FAKECUDA_EVENT_H
#define FAKECUDA_EVENT_H

#include "work.h"

struct event {
    CUevent handle;
    struct context *context;
    unsigned flags;
    int refs;
    bool recorded;
    struct capture *capture; size_t *tips, tip_count; /* where it was recorded last, and after which nodes */
    bool stale; /* that capture has ended */
    struct stream *on; /* NULL when what was recorded is done */
    uint64_t seq, nanoseconds;
};

extern struct table events;
extern const struct kind record_kind;

void event_unref(struct event *event); /* with the lock held */

#endif
