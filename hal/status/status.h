/* The bits of the word by which C code of the process sees, without entering Go, what a runtime is doing: those of
 * package status. Go writes the word with atomic stores; who reads it in C loads it with acquire order. */
#ifndef HALSTREAM_STATUS_H
#define HALSTREAM_STATUS_H

#define HALSTREAM_LISTENED 1 /* listeners are notified of operations */
#define HALSTREAM_CAPTURED 2 /* a stream captures */

#endif /* HALSTREAM_STATUS_H */
