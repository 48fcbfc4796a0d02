/* Python functions on streams: their table, and the threads that run them.
 *
 * A stream carries the token of a call, never a Python object. Python's lock guards all of it. */
#ifndef HALSTREAM_DISPATCH_H
#define HALSTREAM_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

#include "cpython.h"

/* What halstreamHostNext returns: a token above these bits. */
enum { HOST_SPAWN = 1, HOST_DROP = 2, HOST_UNREPORTED = 4, HOST_END = 8, HOST_SHIFT = 4 };

/* A function with its arguments, from the call that enqueues it until it has run or was dropped. Its references are
 * owned. */
typedef struct hs_call {
    struct hs_call *next;   /* in a list of calls that are being made, or of unused ones */
    int64_t token;          /* 0 before it has one */
    object *function;       /* NULL: the arguments are only kept until here */
    object *names;          /* tuple of the names of the last arguments, or NULL */
    uint32_t count;         /* of arguments */
    uint32_t site;          /* where it was enqueued, as in sites.h */
    uint8_t checked;        /* its exception is raised by a synchronize */
    uint8_t kept;           /* by a graph: it runs any number of times, until it is dropped */
    object *values[];
} hs_call;

/* The call with a token, NULL if it has ended. */
hs_call *halstream_call_find(int64_t token);
/* Marks a call as kept by a graph, if it is one. */
void halstream_call_keep(hs_call *c);
/* Takes note of calls that a graph has kept, and nothing uses any more; halstream_calls_released of calls.h frees
 * them. */
void halstream_calls_release(const uint64_t *tokens, size_t count);

/* Puts the functions for Python into a dictionary and keeps those of Python's that
 * it holds; see _hostfunc.py. Returns 0, or -1 with an exception set. */
int halstream_dispatch_install(uint64_t hooks);

#endif /* HALSTREAM_DISPATCH_H */
