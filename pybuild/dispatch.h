/* Python functions on streams: their table, and the threads that run them.
 *
 * A stream carries the token of a burst: a list of calls that it takes as one
 * operation. While the burst grows, a call that is made adds to the list, and the
 * thread that runs it takes from the list, without entering Go; both hold
 * Python's lock. The word of the burst, which Go shares, says how far that is.
 * All variables here are guarded by Python's lock, but for atomic ones. */
#ifndef HALSTREAM_DISPATCH_H
#define HALSTREAM_DISPATCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "../hal/park/park.h"
#include "callplace.h"
#include "cpython.h"

/* Package hal has the same layout: Given in seat.go, Burst in burst.go. */
typedef struct halstream_given {
    uint64_t token;
    uint32_t flags;
    _Atomic uint32_t taken; /* the thread has found it */
} halstream_given;

enum { GIVEN_DROP = 1, GIVEN_SPAWN = 2, GIVEN_WATCH = 4 };

#define BURST_BITS 31
#define BURST_MOST ((UINT64_C(1) << BURST_BITS) - 1)
#define BURST_BEGIN (UINT64_C(1) << BURST_BITS)
#define BURST_CUT (UINT64_C(1) << 62)
#define BURST_SEALED (UINT64_C(1) << 63)

/* What the Go functions of dispatch.go return: a token above these bits, which are
 * those of hostNext in hostfunc.go. */
enum { HOST_SPAWN = 1, HOST_DROP = 2, HOST_UNREPORTED = 4, HOST_END = 8, HOST_SIT = 16, HOST_SHIFT = 5 };

/* One call of a function. Its references are owned. */
typedef struct hs_call {
    struct hs_call *next;
    object *function; /* NULL: the arguments are only kept until here */
    object *names;    /* tuple of the names of the last arguments, or NULL */
    uint32_t count;   /* of arguments */
    uint32_t checked; /* its exception is raised by a synchronize */
    callplace at;     /* where it was enqueued */
    object *values[]; /* the first is free for PY_VECTORCALL_ARGUMENTS_OFFSET */
} hs_call;

typedef struct hs_burst {
    _Atomic uint64_t word;
    hs_call *first, **end; /* calls that have not begun */
    int64_t token;
    uint32_t generation;
    uint32_t lane; /* of its stream, 0 for none */
    int kept;      /* by a graph: its one call runs any number of times, until it is dropped */
} hs_burst;

/* A thread that runs functions. */
typedef struct hs_runner {
    struct hs_runner *next, **link;
    halstream_given *given; /* what it was given while it slept */
    hs_parker *parker;
    uint64_t ident;
    hs_burst *burst;
    hs_call *call; /* that runs */
} hs_runner;

extern hs_runner *halstream_runners;

/* Makes a call of `n` values, of which the last ones have names; returns NULL
 * without memory. */
hs_call *halstream_call_new(object *function, object *const *values, intptr_t n, object *names, int checked);
void halstream_call_free(hs_call *c);
/* The same for a list of calls, which may be empty. */
void halstream_calls_free(hs_call *first);

/* Makes a burst of `count` calls, from first to the one that *end belongs to. */
hs_burst *halstream_burst_new(hs_call *first, hs_call **end, uint64_t count);
hs_burst *halstream_burst_find(int64_t token);
/* Marks a burst as kept by a graph, if it is one. Called with Python's lock. */
void halstream_burst_keep(hs_burst *b);
/* Frees the calls of a burst that have not begun. */
void halstream_burst_empty(hs_burst *b);
/* Frees a burst that nobody runs, and the calls in it. */
void halstream_burst_free(hs_burst *b);
/* Takes note of bursts that a graph has kept, and nothing uses any more; halstream_bursts_released of calls.h frees them. */
void halstream_bursts_release(const uint64_t *tokens, size_t count);
/* Adds calls to the burst that grows at the end of a stream; 0 if there is none. */
int halstream_burst_add(int64_t stream, hs_call *first, hs_call **end, uint64_t count);
/* Makes b the burst that grows at the end of a stream. */
void halstream_burst_grows(int64_t stream, hs_burst *b);

/* How many calls exist that have not begun, and how many of them graphs keep. */
extern int64_t halstream_calls_pending, halstream_calls_kept;
/* Not 0 while functions wait and no thread is free for them; Go writes it. */
uint32_t *halstream_pressure_word(void);

/* Functions of dispatch.c, dispatchlist.c and dispatchcall.c for Python, as a dictionary gets them. */
object *halstream_dispatch(object *self, object *unused);
object *halstream_performed(object *self, object *unused);
object *halstream_function_of(object *self, object *token);
object *halstream_arguments_of(object *self, object *token);
object *halstream_place_of(object *self, object *token);

/* Puts the functions for Python into a dictionary and keeps those of Python's that
 * it holds; see _hostfunc.py. Returns 0, or -1 with an exception set. */
int halstream_dispatch_install(uint64_t hooks);
object *halstream_hook(int which);
enum { HOOK_SPAWN, HOOK_REPORT, HOOK_UNREPORTED, HOOK_NOTHING, HOOK_CALL, HOOK_CHECKED, HOOK_MANY, HOOKS };

#endif /* HALSTREAM_DISPATCH_H */
