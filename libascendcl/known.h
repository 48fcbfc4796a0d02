/* What C knows of streams and events, so that a call enters Go only where Go is needed. */
#ifndef LOOKALIKE_KNOWN_H
#define LOOKALIKE_KNOWN_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "../hal/status/status.h"

#pragma GCC visibility push(hidden)

typedef struct lookalike_queue lookalike_queue; /* the functions of one stream */

/* What a handle is known as: a place on the timeline of a stream, that of the latest record of an event; or a
 * stream. Whoever changes it keeps `version` odd meanwhile. */
typedef struct lookalike_known {
    uint64_t version, handle;
    const halstream_status *words; /* of an event NULL, where only Go can tell whether it is done */
    uint64_t place;                /* of a stream the id in its words */
    uint64_t context;              /* of a stream: where work is enqueued this one has to be current */
    uint64_t ahead;                /* of an event: the stream of its latest record if Go does not know of it, else 0 */
    lookalike_queue *queue;        /* of functions; it stays with the place in the table */
    int32_t of_event;
    int32_t ordinal; /* of an event that C may record, its device's; else -1 */
} lookalike_known;

/* The word of the runtime: while it is not 0 each call is to enter Go. NULL before there is a runtime. */
extern const uint32_t *lookalike_word;

/* Where what is known of a handle stands, made if it is not there; NULL without memory. */
lookalike_known *lookalike_entry(uint64_t handle);

/* 1 or 0 where C can tell, -1 where Go has to: whether a stream has no work, and whether the latest record of an
 * event is done. Neither has an error to report then. */
int lookalike_stream_idle(uint64_t handle);
int lookalike_event_done(uint64_t handle);
/* 1 if the call was made, 0 if Go has to make it: the record of an event, and a wait of a stream for an event
 * that is done. */
int lookalike_record(uint64_t event, uint64_t stream);
int lookalike_wait_event(uint64_t stream, uint64_t event);
/* 1 if nothing is pending on a stream but functions that may grow in number, all of which have ended. */
int lookalike_functions_done(uint64_t handle);
/* 1 if a stream has no work, after a short wait for functions that are about to end; 0 if Go has to wait. */
int lookalike_stream_finished(uint64_t handle);

/* -- functions on streams: known_functions.c -- */

/* Functions that a stream takes as one operation, which grows while it runs: Burst in package hal. */
typedef struct lookalike_burst lookalike_burst;

/* Adds a function to the burst that grows at the end of a stream, for its subscribed thread or for those of the
 * library; 0 if Go has to enqueue it. */
int lookalike_add(uint64_t stream, uintptr_t function, uintptr_t argument, int reports);
/* Makes a burst of one function, for Go to enqueue; NULL where there is no room for it. pressure is lookalike_pressure,
 * or the like word of the queue of a subscribed thread. */
lookalike_burst *lookalike_burst_new(uint64_t stream, uintptr_t function, uintptr_t argument, const uint32_t *pressure);
/* What its maker does last: with `grows` others may add to it from now on; with `failed` it was not enqueued. */
void lookalike_burst_made(lookalike_burst *b, int grows, int failed);
/* It will not run, or not the rest of it. */
void lookalike_burst_drop(lookalike_burst *b);
/* A graph keeps it. */
void lookalike_burst_keep(lookalike_burst *b);
/* Whether one does. Then it is a single function, which is run by itself: the graph may end, and the burst with it,
 * as soon as the function has ended. */
int lookalike_burst_kept(const lookalike_burst *b, uintptr_t *function, uintptr_t *argument);
/* Runs its functions; 1 when it has ended, 0 if others have to run before the rest of it. */
int lookalike_burst_run(lookalike_burst *b);
/* What its runner does last, when the core knows that it has ended. */
void lookalike_burst_end(lookalike_burst *b);
/* Adds a function to the burst at the end of a stream that takes more; 0 without one. */
int lookalike_queue_add(lookalike_queue *q, uint64_t stream, uintptr_t function, uintptr_t argument, int reports);
/* Whether all functions that were added to a stream have ended. */
int lookalike_functions_ended(lookalike_queue *q);
/* Not 0 while functions wait and no thread is free for them; Go writes it. */
extern uint32_t lookalike_pressure;

/* For threads that look for something for a while before they sleep. */
static inline void lookalike_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Nanoseconds since some moment. */
static inline int64_t lookalike_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#pragma GCC visibility pop
#endif
