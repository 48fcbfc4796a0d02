/* The words by which C code of the process sees how far a stream is, without
 * entering Go. Package status has the same layout, field by field.
 *
 * Go writes them with atomic stores, after the effects of what they report; who
 * reads them in C loads them with acquire order. They are never freed, only
 * given to the next stream, and the two numbers of a stream only grow: a place
 * that was reached once is reached for ever. */
#ifndef HALSTREAM_STATUS_H
#define HALSTREAM_STATUS_H

#include <stdint.h>

/* The bit of a runtime's word that says that its devices are a vendor's, as Foreign in Go. */
#define HALSTREAM_FOREIGN 4
/* The bit that says that a stream captures, as Captured in Go. */
#define HALSTREAM_CAPTURED 16
/* The bit that says that a device was lost, as Lost in Go. */
#define HALSTREAM_LOST 32

typedef struct halstream_status {
    uint64_t id;        /* of the open stream that they belong to, 0 for none */
    uint64_t submitted; /* operations enqueued */
    uint64_t completed; /* operations done, in stream order */
    uint32_t special;   /* not 0: only the core knows what a call does */
    int32_t ordinal;    /* of the stream's device */
    uint32_t *order;    /* not 0 there: work of the legacy default stream comes first; NULL: never */
    uint32_t unused[2];
    uint64_t unused_too[2]; /* a cache line: streams that different threads move share none */
} halstream_status;

#endif /* HALSTREAM_STATUS_H */
