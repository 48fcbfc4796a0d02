/* What C knows of streams and events, so that a query of one enters Go only where Go is needed. */
#ifndef LOOKALIKE_KNOWN_H
#define LOOKALIKE_KNOWN_H

#include <stddef.h>
#include <stdint.h>

#include "../hal/status/status.h"

#pragma GCC visibility push(hidden)

/* What a handle is known as: a place on the timeline of a stream, that of the latest record of an event. For a
 * stream itself only the words count. Go changes it, and keeps `version`
 * odd meanwhile. */
typedef struct lookalike_known {
    uint64_t version, handle;
    const halstream_status *words;
    uint64_t place; /* of a stream the id in its words */
    int32_t of_event, unused;
} lookalike_known;

/* The word of the runtime: while it is not 0 each call is to enter Go. NULL before there is a runtime. */
extern const uint32_t *lookalike_word;

/* Where what is known of a handle stands, made if it is not there; NULL without memory. */
lookalike_known *lookalike_entry(uint64_t handle);

/* 1 or 0 where C can tell, -1 where Go has to: whether a stream has no work, and whether the latest record of an
 * event is done. Neither has an error to report then. */
int lookalike_stream_idle(uint64_t handle);
int lookalike_event_done(uint64_t handle);

#pragma GCC visibility pop
#endif
